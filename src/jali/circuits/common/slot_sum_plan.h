// Sums over evenly spaced slots by rotations: the plan, and the steps of any scheme.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "jali/circuits/common/evaluator.h"
#include "jali/params/rlwe_params.h"

namespace jali::circuits {

/// y[s] = sum_{t < count} x[s + t stride], cyclically over the slots. It takes about log(count)
/// steps; the rotations of a step share a ModUp.
class SlotSumPlan {
 public:
  /// One step turns the sum P of `terms` addends into one of radix * terms + digit addends:
  ///   sum_{t < radix} rot_{(digit + t terms) stride}(P) + sum_{u < digit} rot_{u stride}(x).
  struct Step {
    std::size_t terms = 0, radix = 0, digit = 0;
    /// Whether it is a first step of one addend, whose result is x itself.
    bool trivial() const { return terms == 0 && digit == 1; }
  };

  /// radix: 2, 4 or 8 addends in a step; 2 needs the fewest keys. 0 stands for the fastest at
  /// `level`. Throws InvalidArgument for another radix, and if count * stride exceeds the number of
  /// slots.
  SlotSumPlan(const rlwe::Params& params, std::size_t stride, std::size_t count, int level,
              std::size_t slots, int radix);

  std::size_t stride() const { return stride_; }
  std::size_t count() const { return count_; }
  const std::vector<Step>& steps() const { return steps_; }
  double cost() const { return cost_; }  // predicted time, in the unit of LevelCost
  /// By so many slots, if addends are `multiple` strides apart.
  int rotation(std::size_t multiple) const;
  /// The rotations for which keys are needed: sorted, distinct, without 0.
  std::vector<int> rotations() const;

 private:
  std::size_t stride_, count_, slots_;
  std::vector<Step> steps_;
  double cost_ = 0;
};

/// The sum. reduce(sum, last) divides the sum of a step by P, and by whatever it likes if it is the
/// last one. It is not called if x is the sum.
template <Rotating E, class Reduce>
typename E::Ciphertext sum_slots(const E& evaluator, const SlotSumPlan& plan,
                                 const typename E::Ciphertext& x, Reduce reduce) {
  using Hoisted = typename E::Hoisted;
  typename E::Ciphertext partial = evaluator.copy(x);
  std::optional<Hoisted> hoisted_input;
  for (std::size_t i = 0; i < plan.steps().size(); ++i) {
    const SlotSumPlan::Step& step = plan.steps()[i];
    if (step.trivial()) continue;
    std::optional<typename E::Extended> sum;
    const auto add = [&](const typename E::Ciphertext& source, std::optional<Hoisted>& hoisted,
                         int r) {
      if (r != 0 && !hoisted) hoisted = evaluator.hoist(source);
      typename E::Extended term = r == 0 ? evaluator.extend(source)
                                         : rlwe::composed_rotate_extended(evaluator, *hoisted, r);
      if (sum) {
        evaluator.add_inplace(*sum, term);
      } else {
        sum = std::move(term);
      }
    };
    std::optional<Hoisted> hoisted;
    for (std::size_t t = 0; t < step.radix; ++t) {
      add(partial, hoisted, plan.rotation(step.digit + t * step.terms));
    }
    for (std::size_t u = 0; u < step.digit; ++u) add(x, hoisted_input, plan.rotation(u));
    partial = reduce(*sum, i + 1 == plan.steps().size());
  }
  return partial;
}

}  // namespace jali::circuits
