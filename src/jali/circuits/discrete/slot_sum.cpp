#include "jali/circuits/discrete/slot_sum.h"

#include "jali/circuits/common/rotation_keys.h"

namespace jali::circuits {

static_assert(Rotating<discrete::Evaluator>);

IntegerSlotSum::IntegerSlotSum(const discrete::ParamsPtr& params, std::size_t stride,
                               std::size_t count, int level, int radix)
    : plan_(*params, stride, count, level < 0 ? params->top() : level, params->n() / 2, radix) {}

discrete::Ciphertext IntegerSlotSum::apply(const discrete::Evaluator& evaluator,
                                           const discrete::Ciphertext& x,
                                           discrete::Overflow overflow) const {
  require_rotations(evaluator, rotations(), "the slot sum");
  const bool wraps = evaluator.noise().sum(x.estimate.range, plan_.count(), overflow).wraps;
  const auto reduce = [&](const discrete::Extended& term, bool) { return evaluator.reduce(term); };
  if (!wraps || x.estimate.range.wraps) return sum_slots(evaluator, plan_, x, reduce);
  discrete::Ciphertext residues = evaluator.copy(x);
  residues.estimate = evaluator.noise().as_residues(x.estimate);
  return sum_slots(evaluator, plan_, residues, reduce);
}

}  // namespace jali::circuits
