// Programs: a function of ciphertexts, recorded once and run again without the host's work.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/engine.h"
#include "jali/base/turns.h"
#include "jali/ckks/evaluator.h"

namespace jali::ckks {

/// From ciphertexts on the evaluator's device to ciphertexts there.
using CiphertextFunction = std::function<std::vector<Ciphertext>(std::span<const Ciphertext>)>;

/// A function with its shapes fixed. On a GPU it is one graph with memory of its own: a run copies its
/// inputs there, starts the graph, and copies the results out. Elsewhere the function runs again.
///
/// The function must do the same at every call and use what it refers to (evaluator, keys, encoded
/// plaintexts) as long as the program lives. Encoding belongs outside of it on a GPU: a multiplication by
/// numbers uploads them.
class Program {
 public:
  /// examples: in any memory; their level, scale, batch, packing and noise are what inputs must have.
  Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
          std::span<const Ciphertext* const> examples);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// inputs: in any memory, shaped like the examples and with no more noise than they have. The results
  /// are on the device. Throws InvalidArgument, naming what differs, and for a call from its own function. Threads
  /// take turns.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs);
  std::size_t arity() const { return inputs_.size(); }
  /// Memory of the device that it keeps, its inputs included.
  std::size_t bytes() const;

 private:
  void check(std::size_t index, const Ciphertext& input) const;

  const std::shared_ptr<const Evaluator> evaluator_;
  const CiphertextFunction function_;
  Turns turns_;
  std::vector<Ciphertext> inputs_, outputs_;  // the blocks that the graph reads and writes
  std::unique_ptr<backend::Captured> captured_;
};

}  // namespace jali::ckks
