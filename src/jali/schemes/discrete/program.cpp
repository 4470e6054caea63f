#include "jali/schemes/discrete/program.h"

#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::discrete {

namespace {

// Estimates are sums and products of doubles, so equal ones may differ by rounding.
constexpr double kRounding = 1 + 0x1p-30;

/// Whether everything that holds for numbers and noise of `b` holds for those of `a`, too.
bool covered(const Estimate& a, const Estimate& b) {
  return a.range.wraps == b.range.wraps && a.range.low >= b.range.low &&
         a.range.high <= b.range.high && a.slot <= b.slot * kRounding &&
         a.coefficient <= b.coefficient * kRounding;
}

}  // namespace

Program::Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
                 std::span<const Ciphertext* const> examples)
    : recorded_(evaluator, std::move(function),
                rlwe::Recorded<Evaluator>::brought(*evaluator, examples)) {}

void Program::check(std::size_t index, const Ciphertext& input) const {
  const Ciphertext& example = recorded_.examples()[index];
  require<ParamsMismatch>(input.params != nullptr && input.params->hash() == example.params->hash(),
                          "an input of the captured function belongs to different parameters");
  rlwe::require_like_example(index, input, example);
  require<InvalidArgument>(input.factor == example.factor, [&] {
    return "input " + std::to_string(index) +
           " of the captured function has another factor than its example: drop_to a lower level "
           "gives both that level's";
  });
  require<InvalidArgument>(covered(input.estimate, example.estimate), [&] {
    return "input " + std::to_string(index) +
           " of the captured function has more noise or a wider range than its example, for which "
           "the results are known to be right: capture the function with an example like it";
  });
}

// What is known of the results holds for every input that is covered by its example.
std::vector<Ciphertext> Program::run(std::span<const Ciphertext* const> inputs) {
  recorded_.require_count(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) check(i, *inputs[i]);
  return recorded_.run(inputs, [](Ciphertext&) {});
}

}  // namespace jali::discrete
