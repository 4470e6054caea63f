// Sums over evenly spaced slots of both rows by rotations.
#pragma once

#include <cstddef>
#include <vector>

#include "jali/circuits/common/slot_sum_plan.h"
#include "jali/schemes/discrete/evaluator.h"

namespace jali::circuits {

/// y[s] = sum_{t < count} x[s + t stride] in each row, cyclically. With stride 1, the first slot of
/// a block of `count` slots holds the sum of the block. If count * stride is N/2, all slots of a
/// row that are `stride` apart hold the same sum.
class IntegerSlotSum {
 public:
  /// level: at which the plan is made; -1: the top. radix and refusals: SlotSumPlan's.
  IntegerSlotSum(const discrete::ParamsPtr& params, std::size_t stride, std::size_t count,
                 int level = -1, int radix = 0);

  std::vector<int> rotations() const { return plan_.rotations(); }
  double cost() const { return plan_.cost(); }  // predicted time, in the unit of LevelCost

  /// x may have any level. Throws KeyMissing, which names the missing rotations, RangeExceeded if
  /// the sum of `count` numbers may not fit T, and what the evaluator throws.
  discrete::Ciphertext apply(const discrete::Evaluator& evaluator, const discrete::Ciphertext& x,
                             discrete::Overflow overflow = discrete::Overflow::refuse) const;

 private:
  SlotSumPlan plan_;
};

}  // namespace jali::circuits
