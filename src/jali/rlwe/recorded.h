// A function of ciphertexts that is recorded once, and run again without the work of the host
// (ring/recording.h): what the programs of all schemes share.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/ring/recording.h"
#include "jali/rlwe/ciphertext.h"

namespace jali::rlwe {

/// Throws KeyMismatch or InvalidArgument, which name input `index`, unless its body has the key,
/// the parts, the level and the batch of its example.
void require_like_example(std::size_t index, const Ciphertext& input, const Ciphertext& example);

/// For sentences: input `index` has another `what`, with these numbers.
std::string unlike_example(std::size_t index, const char* what, double got, double expected);

/// E: an evaluator. The function's operands have fixed shapes. It must do the same at every call
/// and use what it refers to (evaluator, keys, encoded plaintexts) as long as this lives.
template <class E>
class Recorded {
 public:
  using Ciphertext = typename E::Ciphertext;
  using Function = std::function<std::vector<Ciphertext>(std::span<const Ciphertext>)>;

  /// Copies of the examples, which may lie in any memory, on the evaluator's device.
  static std::shared_ptr<std::vector<Ciphertext>> brought(
      const E& evaluator, std::span<const Ciphertext* const> examples) {
    auto out = std::make_shared<std::vector<Ciphertext>>();
    for (const Ciphertext* example : examples) out->push_back(evaluator.bring(*example));
    return out;
  }

  /// examples: on the evaluator's device. They become the inputs: a run overwrites them. Throws
  /// InvalidArgument for results that lie elsewhere.
  Recorded(std::shared_ptr<const E> evaluator, Function function,
           std::shared_ptr<std::vector<Ciphertext>> examples)
      : evaluator_(std::move(evaluator)),
        function_(std::move(function)),
        inputs_(std::move(examples)) {
    recording_ = std::make_unique<ring::Recording>(
        evaluator_->ring(), "this captured function",
        [this] { outputs_ = function_(std::as_const(*inputs_)); });
    for (const Ciphertext& a : outputs_) {
      require<InvalidArgument>(
          !a.parts.empty() && evaluator_->is_here(a),
          "the results of a captured function must be ciphertexts of its own evaluator");
    }
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  const std::vector<Ciphertext>& examples() const { return *inputs_; }

  /// Throws InvalidArgument for another number of inputs.
  void require_count(std::size_t count) const {
    require<InvalidArgument>(count == inputs_->size(), [&] {
      return "the captured function takes " + std::to_string(inputs_->size()) +
             " ciphertexts, not " + std::to_string(count);
    });
  }

  /// inputs: in any memory, and like the examples, which the scheme checks. finish: called with
  /// each result, which lies on the device. Threads take turns. Throws InvalidArgument for a call
  /// from its own function.
  template <class Finish>
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs, Finish finish) {
    std::vector<ring::Recording::Input> blocks;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t part = 0; part < (*inputs_)[i].parts.size(); ++part) {
        blocks.push_back({&(*inputs_)[i].parts[part], &inputs[i]->parts[part]});
      }
    }
    std::vector<Ciphertext> out;
    recording_->run(blocks, [&] {
      for (const Ciphertext& a : outputs_) {
        out.push_back(evaluator_->copy(a));
        finish(out.back());
      }
    });
    return out;
  }

  /// The bytes of device memory that it keeps, inputs included.
  std::size_t bytes() const {
    std::size_t total = recording_->bytes();
    for (const Ciphertext& input : *inputs_) {
      for (const auto& part : input.parts) total += part.bytes();
    }
    return total;
  }

 private:
  const std::shared_ptr<const E> evaluator_;
  const Function function_;
  const std::shared_ptr<std::vector<Ciphertext>> inputs_;  // the blocks that the recording reads
  std::vector<Ciphertext> outputs_;  // and those that it writes
  std::unique_ptr<ring::Recording> recording_;
};

}  // namespace jali::rlwe
