#include "jali/circuits/ckks/slot_sum.h"

#include <algorithm>
#include <string>

#include "jali/base/error.h"
#include "jali/schemes/ckks/range.h"

namespace jali::circuits {
namespace {

/// The slots of an input; -1: all N/2.
int log_slots_of(const ckks::Params& params, int log_slots) {
  require<InvalidArgument>(log_slots < params.log_n(), [&] {
    return "log_slots " + std::to_string(log_slots) + " is above " +
           std::to_string(params.log_n() - 1);
  });
  return log_slots < 0 ? params.log_n() - 1 : log_slots;
}

}  // namespace

SlotSum::SlotSum(ckks::ParamsPtr params, std::size_t stride, std::size_t count, int level,
                 int log_slots, int radix)
    : log_slots_(log_slots_of(*params, log_slots)),
      plan_(*params, stride, count, level < 0 ? params->depth() : level,
            std::size_t{1} << log_slots_, radix) {}

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
    for (std::size_t t = 0; t < plan_.count(); ++t) sum += x[(s + t * plan_.stride()) % x.size()];
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

  const auto count = static_cast<double>(plan_.count());
  bool rescaled = false;
  ckks::Ciphertext sum = sum_slots(evaluator, plan_, x, [&](ckks::Extended& term, bool last) {
    if (last) term.estimate.sum_of_slots(x.estimate, count, variance);
    rescaled = rescale && last;
    return rescaled ? evaluator.reduce_rescale(term, peak) : evaluator.reduce(term, peak);
  });
  if (rescale && !rescaled) sum = evaluator.rescale(sum);
  sum.estimate.bound_sum(x.estimate, count);
  return sum;
}

}  // namespace jali::circuits
