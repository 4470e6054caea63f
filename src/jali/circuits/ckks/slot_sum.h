// Sums over evenly spaced slots by rotations.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "jali/circuits/ckks/block_transform.h"
#include "jali/circuits/common/slot_sum_plan.h"

namespace jali::circuits {

/// y[s] = sum_{t < count} x[s + t stride], cyclically over the slots. With stride 1, the first slot
/// of a block of `count` slots holds the sum of the block. If count * stride is the number of
/// slots, all slots that are `stride` apart hold the same sum.
class SlotSum {
 public:
  using Step = SlotSumPlan::Step;

  /// level: at which the plan is made; -1: the top. log_slots: of the inputs; -1: all N/2. radix
  /// and refusals: SlotSumPlan's.
  SlotSum(ckks::ParamsPtr params, std::size_t stride, std::size_t count, int level = -1,
          int log_slots = -1, int radix = 0);

  std::vector<int> rotations() const { return plan_.rotations(); }
  const std::vector<Step>& steps() const { return plan_.steps(); }
  double cost() const { return plan_.cost(); }  // predicted time, in the unit of LevelCost

  /// x may have any level. Throws KeyMissing, which names the missing rotations.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;
  /// apply, then rescale; the last division by P serves both. peak: no sum, nor a sum of some of
  /// its terms, is larger. variance: a bound on that of the sum in the claim of its precision,
  /// before switches and the division.
  ckks::Ciphertext apply_rescale(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                                 double peak = params::kUnbounded,
                                 double variance = params::kUnbounded) const;
  /// The largest sum, if x has these moduli in its slots.
  double largest(std::span<const double> x) const;

 private:
  ckks::Ciphertext run(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x, bool rescale,
                       double peak, double variance) const;

  int log_slots_ = 0;
  SlotSumPlan plan_;
};

}  // namespace jali::circuits
