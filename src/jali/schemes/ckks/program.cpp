#include "jali/schemes/ckks/program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

// Estimates are sums and products of doubles, so equal ones may differ by rounding.
constexpr double kRounding = 1 + 0x1p-30;

/// Whether inputs may be packed so, if the example is: what is known of its other slots has to hold
/// for theirs.
bool serves(Packing input, const Packing& example) {
  if (input.rest <= example.rest) input.rest = example.rest;
  return input == example;
}

}  // namespace

Program::Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
                 std::span<const Ciphertext* const> examples)
    : Program(evaluator, std::move(function),
              rlwe::Recorded<Evaluator>::brought(*evaluator, examples)) {}

Program::Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
                 std::shared_ptr<std::vector<Ciphertext>> examples)
    : recorded_(std::move(evaluator), std::move(function), std::move(examples)) {}

void Program::check(std::size_t index, const Ciphertext& input) const {
  const Ciphertext& example = recorded_.examples()[index];
  require<ParamsMismatch>(input.params != nullptr && input.params->hash() == example.params->hash(),
                          "an input of the captured function belongs to different parameters");
  rlwe::require_like_example(index, input, example);
  const auto equal = [&](const char* what, double got, double expected) {
    require<InvalidArgument>(got == expected,
                             [&] { return rlwe::unlike_example(index, what, got, expected); });
  };
  equal("scale", input.scale, example.scale);
  equal("log_slots", input.log_slots, example.log_slots);
  require<InvalidArgument>(serves(input.packing, example.packing), [&] {
    return "input " + std::to_string(index) +
           " of the captured function is packed differently than its example (length, batch axis, "
           "complex or real, how its numbers lie, what the other slots hold): capture the function "
           "for such inputs";
  });
  require<InvalidArgument>(
      input.estimate.variance <= example.estimate.variance * kRounding &&
          input.estimate.message <= example.estimate.message * kRounding &&
          input.estimate.error <= example.estimate.error * kRounding &&
          input.estimate.noise <= example.estimate.noise * kRounding &&
          input.estimate.peak <= example.estimate.peak * kRounding &&
          params::degree_of(input.estimate.lineage) <= params::degree_of(example.estimate.lineage),
      [&] {
        return "input " + std::to_string(index) +
               " of the captured function has more noise, a larger magnitude or a higher degree in "
               "encrypted numbers than its example, for which the results' precision is known: "
               "capture the function with an example like it";
      });
}

// The claimed precision of the results is that of the examples. Of numbers that are related errors
// add up. The lineage of a batch of several encryptions is not known, and it is taken to be as its
// example.
void Program::check_apart(std::span<const Ciphertext* const> inputs) const {
  for (std::size_t j = 1; j < inputs.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const params::Lineage &a = inputs[i]->estimate.lineage, &b = inputs[j]->estimate.lineage;
      const bool related =
          inputs[i] == inputs[j] || (a.root != 0 && b.root != 0 && !params::apart(a, b));
      require<InvalidArgument>(
          !related || !params::apart(recorded_.examples()[i].estimate.lineage,
                                     recorded_.examples()[j].estimate.lineage),
          [&] {
            return "inputs " + std::to_string(i) + " and " + std::to_string(j) +
                   " of the captured function are made of the same numbers, and its examples were "
                   "encrypted apart: capture the function with examples that are related as these "
                   "are, so that the results' precision is known";
          });
    }
  }
}

std::vector<Ciphertext> Program::run(std::span<const Ciphertext* const> inputs) {
  recorded_.require_count(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) check(i, *inputs[i]);
  check_apart(inputs);
  std::vector<const Estimate*> estimates;
  for (const Ciphertext* x : inputs) estimates.push_back(&x->estimate);
  return recorded_.run(inputs, [&](Ciphertext& out) { out.estimate.set_result_of(estimates); });
}

}  // namespace jali::ckks
