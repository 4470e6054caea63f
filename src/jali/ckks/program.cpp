#include "jali/ckks/program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

// Estimates are sums and products of doubles, so equal ones may differ by rounding.
constexpr double kRounding = 1 + 0x1p-30;

std::shared_ptr<std::vector<Ciphertext>> brought(const Evaluator& evaluator,
                                                 std::span<const Ciphertext* const> examples) {
  auto out = std::make_shared<std::vector<Ciphertext>>();
  for (const Ciphertext* example : examples) out->push_back(evaluator.bring(*example));
  return out;
}

/// Whether inputs may be packed so, if the example is: what is known of its other slots has to hold
/// for theirs.
bool serves(Packing input, const Packing& example) {
  if (input.rest <= example.rest) input.rest = example.rest;
  return input == example;
}

}  // namespace

Program::Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
                 std::span<const Ciphertext* const> examples)
    : Program(evaluator, std::move(function), brought(*evaluator, examples)) {}

Program::Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
                 std::shared_ptr<std::vector<Ciphertext>> examples)
    : evaluator_(std::move(evaluator)),
      function_(std::move(function)),
      inputs_(std::move(examples)) {
  recording_ =
      std::make_unique<ring::Recording>(evaluator_->ring(), "this captured function",
                                        [this] { outputs_ = function_(std::as_const(*inputs_)); });
  for (const Ciphertext& a : outputs_) {
    require<InvalidArgument>(
        !a.parts.empty() && evaluator_->is_here(a),
        "the results of a captured function must be ciphertexts of its own evaluator");
  }
}

void Program::check(std::size_t index, const Ciphertext& input) const {
  const Ciphertext& example = (*inputs_)[index];
  const auto differs = [&](const char* what, double got, double expected) {
    return "input " + std::to_string(index) + " of the captured function has another " + what +
           " than its example (" + std::to_string(got) + ", not " + std::to_string(expected) +
           "): bring it there, or capture the function for such inputs";
  };
  const auto equal = [&](const char* what, double got, double expected) {
    require<InvalidArgument>(got == expected, [&] { return differs(what, got, expected); });
  };
  require<ParamsMismatch>(input.params != nullptr && input.params->hash() == example.params->hash(),
                          "an input of the captured function belongs to different parameters");
  require<KeyMismatch>(input.key_id == example.key_id, [&] {
    return "input " + std::to_string(index) +
           " of the captured function belongs to another secret key than its example: capture the "
           "function for each client";
  });
  equal("number of parts", static_cast<double>(input.parts.size()),
        static_cast<double>(example.parts.size()));
  equal("level", input.level, example.level);
  equal("scale", input.scale, example.scale);
  equal("batch", static_cast<double>(input.batch()), static_cast<double>(example.batch()));
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
          !related ||
              !params::apart((*inputs_)[i].estimate.lineage, (*inputs_)[j].estimate.lineage),
          [&] {
            return "inputs " + std::to_string(i) + " and " + std::to_string(j) +
                   " of the captured function are made of the same numbers, and its examples were "
                   "encrypted apart: capture the function with examples that are related as these "
                   "are, so that the results' precision is known";
          });
    }
  }
}

std::size_t Program::bytes() const {
  std::size_t total = recording_->bytes();
  for (const Ciphertext& input : *inputs_) {
    for (const auto& part : input.parts) total += part.bytes();
  }
  return total;
}

std::vector<Ciphertext> Program::run(std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(inputs.size() == inputs_->size(), [&] {
    return "the captured function takes " + std::to_string(inputs_->size()) + " ciphertexts, not " +
           std::to_string(inputs.size());
  });
  for (std::size_t i = 0; i < inputs.size(); ++i) check(i, *inputs[i]);
  check_apart(inputs);
  std::vector<ring::Recording::Input> blocks;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t part = 0; part < (*inputs_)[i].parts.size(); ++part) {
      blocks.push_back({&(*inputs_)[i].parts[part], &inputs[i]->parts[part]});
    }
  }
  std::vector<const Estimate*> estimates;
  for (const Ciphertext* x : inputs) estimates.push_back(&x->estimate);
  std::vector<Ciphertext> out;
  recording_->run(blocks, [&] {
    for (const Ciphertext& a : outputs_) {
      out.push_back(evaluator_->copy(a));
      out.back().estimate.set_result_of(estimates);
    }
  });
  return out;
}

}  // namespace jali::ckks
