#include "jali/circuits/common/slot_sum_plan.h"

#include <limits>
#include <set>
#include <string>

#include "jali/base/error.h"
#include "jali/circuits/common/rotation_plan.h"

namespace jali::circuits {
namespace {

// Horner's rule over the digits of count: c -> radix c + digit.
std::vector<SlotSumPlan::Step> horner(std::size_t count, std::size_t radix) {
  std::vector<std::size_t> digits;
  for (std::size_t c = count; c > 0; c /= radix) digits.push_back(c % radix);
  std::vector<SlotSumPlan::Step> steps;
  std::size_t terms = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    steps.push_back({terms, terms == 0 ? 0 : radix, *digit});
    terms = radix * terms + *digit;
  }
  return steps;
}

double cost_of(const std::vector<SlotSumPlan::Step>& steps, const LevelCost& cost) {
  double total = 0;
  for (const auto& step : steps) {
    if (step.trivial()) continue;
    const double turned = static_cast<double>(step.radix + step.digit) - 1;
    total += cost.hoist + turned * cost.product + 2 * cost.mod_down;
  }
  return total;
}

}  // namespace

SlotSumPlan::SlotSumPlan(const rlwe::Params& params, std::size_t stride, std::size_t count,
                         int level, std::size_t slots, int radix)
    : stride_(stride), count_(count), slots_(slots) {
  require<InvalidArgument>(
      stride >= 1 && count >= 1 && stride <= slots_ && count <= slots_ / stride, [&] {
        return "a sum of " + std::to_string(count) + " slots with stride " +
               std::to_string(stride) + " does not fit " + std::to_string(slots_) + " slots";
      });
  require<InvalidArgument>(radix == 0 || radix == 2 || radix == 4 || radix == 8,
                           "radix must be 0 (chosen), 2, 4 or 8");
  const LevelCost cost(params, level);
  cost_ = std::numeric_limits<double>::infinity();
  for (int r : {2, 4, 8}) {
    if (radix != 0 && radix != r) continue;
    auto steps = horner(count, static_cast<std::size_t>(r));
    const double total = cost_of(steps, cost);
    if (total < cost_) {
      cost_ = total;
      steps_ = std::move(steps);
    }
  }
}

int SlotSumPlan::rotation(std::size_t multiple) const {
  return signed_rotation(static_cast<long long>(multiple * stride_ % slots_), slots_);
}

std::vector<int> SlotSumPlan::rotations() const {
  std::set<int> all;
  for (const Step& step : steps_) {
    for (std::size_t t = 0; t < step.radix; ++t) all.insert(rotation(step.digit + t * step.terms));
    for (std::size_t u = 0; u < step.digit; ++u) all.insert(rotation(u));
  }
  all.erase(0);
  return {all.begin(), all.end()};
}

}  // namespace jali::circuits
