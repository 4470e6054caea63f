// Sums over evenly spaced slots by rotations.
#pragma once

#include <cstddef>
#include <vector>

#include "jali/circuits/block_transform.h"

namespace jali::circuits {

/// y[s] = sum_{t < count} x[s + t stride], cyclic over the slots, in about log(count) steps of
/// rotations that share a ModUp. With stride 1: the first slot of a block of `count` holds the
/// block's sum; when count * stride is the number of slots, every slot does.
class SlotSum {
 public:
  /// One step turns the sum P of `terms` addends into one of radix * terms + digit addends:
  ///   sum_{t < radix} rot_{(digit + t terms) stride}(P) + sum_{u < digit} rot_{u stride}(x).
  struct Step {
    std::size_t terms = 0, radix = 0, digit = 0;
  };

  /// radix: 2, 4, or 8 addends a step, 2 needing the fewest keys; 0: the fastest at `level`.
  /// count * stride must not exceed the number of slots.
  SlotSum(ckks::ParamsPtr params, std::size_t stride, std::size_t count, int level = -1,
          int log_slots = -1, int radix = 0);

  std::vector<int> rotations() const;
  const std::vector<Step>& steps() const { return steps_; }
  double cost() const { return cost_; }  // by LevelCost

  /// At any level. Throws KeyMissing naming the rotations.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;
  /// apply, then one level down: the last division by P serves both.
  ckks::Ciphertext apply_rescale(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;

 private:
  ckks::Ciphertext run(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                       bool rescale) const;
  int rotation(std::size_t multiple) const;

  std::size_t stride_ = 1;
  std::size_t count_ = 1;
  std::size_t slots_ = 0;
  int log_slots_ = 0;
  std::vector<Step> steps_;
  double cost_ = 0;
};

}  // namespace jali::circuits
