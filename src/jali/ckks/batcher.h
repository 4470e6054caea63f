// Many independent ciphertexts through one function, in batches that suit the machine: see ring/batching.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "jali/ckks/evaluator.h"
#include "jali/ring/batching.h"

namespace jali::ckks {

/// One ciphertext whose batch is that of all inputs together, in order. They need the same level, scale,
/// parts and packing; the estimate is the worst of theirs, and the batch is an axis of its own.
Ciphertext stack(const Evaluator& evaluator, std::span<const Ciphertext* const> inputs);
/// Its inverse: ciphertexts of the given batches, which add up to a's.
std::vector<Ciphertext> split(const Evaluator& evaluator, const Ciphertext& a,
                              std::span<const std::size_t> batches);

/// Chooses the batch by what it measures: 1, 2, 4, ... are tried on the work itself, as long as memory
/// allows and the time a ciphertext falls.
class Batcher {
 public:
  /// From a ciphertext of any batch to one of the same batch, on the evaluator's device.
  using Function = std::function<Ciphertext(const Ciphertext&)>;
  using Point = ring::Batching::Point;

  /// max_batch: 0 for as large as is good. memory: bytes that it may use; 0 for what is free.
  Batcher(std::shared_ptr<const Evaluator> evaluator, Function function, std::size_t max_batch = 0,
          std::size_t memory = 0);

  /// inputs: of batch 1, in any memory, alike as stack() asks. Results in order, on the device. A batch
  /// that does not fit after all (OutOfMemory), or is too large for the engine (Unsupported), is halved and tried
  /// again. Throws InvalidArgument for a call from its own function. Threads take turns.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs);

  /// The batch in use; 0 before anything was measured.
  std::size_t batch() const { return batching_.batch(); }
  std::vector<Point> curve() const { return batching_.curve(); }

 private:
  const std::shared_ptr<const Evaluator> evaluator_;
  const Function function_;
  ring::Batching batching_;
};

}  // namespace jali::ckks
