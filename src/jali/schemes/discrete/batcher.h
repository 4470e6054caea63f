// Applies a function to many independent ciphertexts, in batches of a size that suits the machine
// (ring/batching.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "jali/rlwe/batches.h"
#include "jali/schemes/discrete/evaluator.h"

namespace jali::discrete {

/// One ciphertext with the vectors of all inputs in its batch, in order. The inputs need equal
/// levels and factors; otherwise it throws InvalidArgument. What is known covers the worst of them;
/// it throws RangeExceeded if T does not tell the numbers of all of them apart.
Ciphertext stack(const Evaluator& evaluator, std::span<const Ciphertext* const> inputs);
/// The inverse of stack: ciphertexts of the given batches. Throws InvalidArgument unless these add
/// up to a's.
std::vector<Ciphertext> split(const Evaluator& evaluator, const Ciphertext& a,
                              std::span<const std::size_t> batches);

// What rlwe/batches.h asks for.
void require_alike(const Ciphertext& a, const Ciphertext& b, std::size_t index);
inline void restore(Ciphertext&, const Ciphertext&) {}

/// The BatcherOf this scheme.
class Batcher {
 public:
  using Function = rlwe::BatcherOf<Evaluator>::Function;
  using Point = ring::Batching::Point;
  using Smaller = ring::Batching::Smaller;

  /// max_batch: the largest batch; 0 sets no limit. memory: the bytes that it may use; 0 stands for
  /// all that is free. smaller: told of batches that were refused.
  Batcher(std::shared_ptr<const Evaluator> evaluator, Function function, std::size_t max_batch = 0,
          std::size_t memory = 0, Smaller smaller = {});

  /// inputs: ciphertexts of batch 1, in any memory, and alike as stack() requires. Returns the
  /// results in order, on the device. If a batch turns out not to fit in memory (OutOfMemory), or
  /// to be too large for the engine (Unsupported), it is halved and tried again. Throws
  /// InvalidArgument if it is called from its own function. Threads take turns.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs);

  /// The batch in use, or 0 if nothing was measured yet.
  std::size_t batch() const { return batches_.batching().batch(); }
  /// The batches that were tried, and the time of each.
  std::vector<Point> curve() const { return batches_.batching().curve(); }

 private:
  rlwe::BatcherOf<Evaluator> batches_;
};

}  // namespace jali::discrete
