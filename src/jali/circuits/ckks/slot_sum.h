// Sums over evenly spaced slots by rotations.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "jali/circuits/ckks/block_transform.h"

namespace jali::circuits {

/// y[s] = sum_{t < count} x[s + t stride], cyclically over the slots. It takes about log(count)
/// steps; the rotations of a step share a ModUp. With stride 1, the first slot of a block of
/// `count` slots holds the sum of the block. If count * stride is the number of slots, all slots
/// that are `stride` apart hold the same sum.
class SlotSum {
 public:
  /// One step turns the sum P of `terms` addends into one of radix * terms + digit addends:
  ///   sum_{t < radix} rot_{(digit + t terms) stride}(P) + sum_{u < digit} rot_{u stride}(x).
  struct Step {
    std::size_t terms = 0, radix = 0, digit = 0;
  };

  /// radix: 2, 4 or 8 addends in a step; 2 needs the fewest keys. 0 stands for the fastest at
  /// `level`. Throws InvalidArgument for another radix, and if count * stride exceeds the number of
  /// slots.
  SlotSum(ckks::ParamsPtr params, std::size_t stride, std::size_t count, int level = -1,
          int log_slots = -1, int radix = 0);

  std::vector<int> rotations() const;
  const std::vector<Step>& steps() const { return steps_; }
  double cost() const { return cost_; }  // predicted time, in the unit of LevelCost

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
  int rotation(std::size_t multiple) const;

  std::size_t stride_ = 1;
  std::size_t count_ = 1;
  std::size_t slots_ = 0;
  int log_slots_ = 0;
  std::vector<Step> steps_;
  double cost_ = 0;
};

}  // namespace jali::circuits
