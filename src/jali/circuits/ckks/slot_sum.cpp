#include "jali/circuits/ckks/slot_sum.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/ckks/composed.h"
#include "jali/ckks/range.h"

namespace jali::circuits {
namespace {

// Horner's rule over the digits of count: c -> radix c + digit.
std::vector<SlotSum::Step> horner(std::size_t count, std::size_t radix) {
  std::vector<std::size_t> digits;
  for (std::size_t c = count; c > 0; c /= radix) digits.push_back(c % radix);
  std::vector<SlotSum::Step> steps;
  std::size_t terms = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    steps.push_back({terms, terms == 0 ? 0 : radix, *digit});
    terms = radix * terms + *digit;
  }
  return steps;
}

// Whether the step is a first one of one addend, whose result is the input itself.
bool trivial(const SlotSum::Step& step) { return step.terms == 0 && step.digit == 1; }

double cost_of(const std::vector<SlotSum::Step>& steps, const LevelCost& cost) {
  double total = 0;
  for (const auto& step : steps) {
    if (trivial(step)) continue;
    const double turned = static_cast<double>(step.radix + step.digit) - 1;
    total += cost.hoist + turned * cost.product + 2 * cost.mod_down;
  }
  return total;
}

}  // namespace

SlotSum::SlotSum(ckks::ParamsPtr params, std::size_t stride, std::size_t count, int level,
                 int log_slots, int radix)
    : stride_(stride), count_(count), log_slots_(log_slots < 0 ? params->log_n() - 1 : log_slots) {
  require<InvalidArgument>(log_slots_ < params->log_n(), [&] {
    return "log_slots " + std::to_string(log_slots_) + " is above " +
           std::to_string(params->log_n() - 1);
  });
  slots_ = std::size_t{1} << log_slots_;
  require<InvalidArgument>(
      stride >= 1 && count >= 1 && stride <= slots_ && count <= slots_ / stride, [&] {
        return "a sum of " + std::to_string(count) + " slots with stride " +
               std::to_string(stride) + " does not fit " + std::to_string(slots_) + " slots";
      });
  require<InvalidArgument>(radix == 0 || radix == 2 || radix == 4 || radix == 8,
                           "radix must be 0 (chosen), 2, 4 or 8");
  const LevelCost cost(*params, level < 0 ? params->depth() : level);
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

int SlotSum::rotation(std::size_t multiple) const {
  return signed_rotation(static_cast<long long>(multiple * stride_ % slots_), slots_);
}

std::vector<int> SlotSum::rotations() const {
  std::set<int> all;
  for (const Step& step : steps_) {
    for (std::size_t t = 0; t < step.radix; ++t) all.insert(rotation(step.digit + t * step.terms));
    for (std::size_t u = 0; u < step.digit; ++u) all.insert(rotation(u));
  }
  all.erase(0);
  return {all.begin(), all.end()};
}

ckks::Ciphertext SlotSum::apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const {
  return run(evaluator, x, false, params::kUnbounded, params::kUnbounded);
}

ckks::Ciphertext SlotSum::apply_rescale(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                                        double peak, double variance) const {
  return run(evaluator, x, true, peak, variance);
}

double SlotSum::largest(std::span<const double> x) const {
  double out = 0;
  for (std::size_t s = 0; s < x.size(); ++s) {
    double sum = 0;
    for (std::size_t t = 0; t < count_; ++t) sum += x[(s + t * stride_) % x.size()];
    out = std::max(out, sum);
  }
  return out;
}

ckks::Ciphertext SlotSum::run(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                              bool rescale, double peak, double variance) const {
  require<InvalidArgument>(x.parts.size() == 2, "a slot sum takes two parts: relinearise first");
  require<InvalidArgument>(x.log_slots == log_slots_, [&] {
    return "the sum was built for 2^" + std::to_string(log_slots_) +
           " slots, and the ciphertext has 2^" + std::to_string(x.log_slots);
  });
  require_rotations(evaluator, rotations(), "the slot sum");
  ckks::claimed_peak(peak, params::kUnbounded);

  ckks::Ciphertext partial = evaluator.copy(x);
  bool rescaled = false;
  std::optional<ckks::Hoisted> hoisted_input;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (trivial(step)) continue;
    std::optional<ckks::Extended> sum;
    const auto add = [&](const ckks::Ciphertext& source, std::optional<ckks::Hoisted>& hoisted,
                         int r) {
      if (r != 0 && !hoisted) hoisted = evaluator.hoist(source);
      ckks::Extended term =
          r == 0 ? evaluator.extend(source) : composed_rotate_extended(evaluator, *hoisted, r);
      if (sum) {
        evaluator.add_inplace(*sum, term);
      } else {
        sum = std::move(term);
      }
    };
    std::optional<ckks::Hoisted> hoisted;
    for (std::size_t t = 0; t < step.radix; ++t)
      add(partial, hoisted, rotation(step.digit + t * step.terms));
    for (std::size_t u = 0; u < step.digit; ++u) add(x, hoisted_input, rotation(u));
    if (i + 1 == steps_.size()) {
      const auto count = static_cast<double>(count_);
      sum->estimate.sum_of_slots(x.estimate, count, variance);
    }
    rescaled = rescale && i + 1 == steps_.size();
    partial = rescaled ? evaluator.reduce_rescale(*sum, peak) : evaluator.reduce(*sum, peak);
  }
  if (rescale && !rescaled) partial = evaluator.rescale(partial);
  partial.estimate.bound_sum(x.estimate, static_cast<double>(count_));
  return partial;
}

}  // namespace jali::circuits
