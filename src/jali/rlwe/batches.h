// Many independent ciphertexts in batches of a size that suits the machine (ring/batching.h): what
// the batchers of all schemes share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/ring/batching.h"
#include "jali/rlwe/ciphertext.h"

namespace jali::rlwe {

/// One body with the vectors of all inputs in its batch, in order, in the ring's memory. Throws
/// InvalidArgument without inputs, for empty ones and unless all have one level and number of
/// parts, and KeyMismatch for different keys.
Ciphertext stack(const ring::Ring& ring, std::span<const Ciphertext* const> inputs);
/// The inverse of stack, for a body in the ring's memory: bodies of the given batches. Throws
/// InvalidArgument unless these add up to a's.
std::vector<Ciphertext> split(const ring::Ring& ring, const Ciphertext& a,
                              std::span<const std::size_t> batches);

/// Chooses the batch by measuring. It tries 1, 2, 4, ... on the work itself, as long as there is
/// memory and the time for one ciphertext falls.
///
/// E: an evaluator. Beside its Ciphertext there are, for it,
///   require_alike(a, b, index)      refuses inputs that do not fit one batch;
///   stack(evaluator, inputs)        one ciphertext of them all;
///   split(evaluator, a, batches)    its inverse;
///   restore(result, input)          says of a result of batch 1 what its input's batch was.
template <class E>
class BatcherOf {
 public:
  using Ciphertext = typename E::Ciphertext;
  /// Takes a ciphertext of any batch, and returns one of the same batch, both on the evaluator's
  /// device.
  using Function = std::function<Ciphertext(const Ciphertext&)>;

  /// max_batch, memory, smaller: see ring::Batching.
  BatcherOf(std::shared_ptr<const E> evaluator, Function function, std::size_t max_batch,
            std::size_t memory, ring::Batching::Smaller smaller)
      : evaluator_(std::move(evaluator)),
        function_(std::move(function)),
        batching_(evaluator_->ring(), "this batcher", max_batch, memory, std::move(smaller)) {}

  const ring::Batching& batching() const { return batching_; }

  /// inputs: ciphertexts of batch 1, in any memory. Returns the results in order, on the device.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      require<InvalidArgument>(inputs[i]->batch() == 1,
                               "the ciphertexts to batch must have a batch of 1 each");
      require_alike(*inputs[0], *inputs[i], i);
      common_key(inputs[0]->key_id, inputs[i]->key_id);
    }
    std::vector<Ciphertext> out;
    batching_.run(inputs.size(), [&](std::size_t first, std::size_t count) {
      const Ciphertext result = function_(stack(*evaluator_, inputs.subspan(first, count)));
      require<InvalidArgument>(result.batch() == count,
                               "a batched function must keep the batch of its operand");
      const std::vector<std::size_t> ones(count, 1);
      std::vector<Ciphertext> parts = split(*evaluator_, result, ones);
      for (std::size_t i = 0; i < count; ++i) {
        restore(parts[i], *inputs[first + i]);
        out.push_back(std::move(parts[i]));
      }
    });
    return out;
  }

 private:
  const std::shared_ptr<const E> evaluator_;
  const Function function_;
  ring::Batching batching_;
};

}  // namespace jali::rlwe
