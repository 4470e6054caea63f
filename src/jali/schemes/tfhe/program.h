// A program is a function of encrypted vectors that is recorded once, and run again without the
// work of the host.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "jali/base/turns.h"
#include "jali/device/graph.h"
#include "jali/schemes/tfhe/evaluator.h"

namespace jali::tfhe {

/// From ciphertexts in the engine's memory to ciphertexts there.
using CiphertextFunction = std::function<std::vector<Ciphertext>(std::span<const Ciphertext>)>;

/// A function whose operands have fixed sizes. On a GPU it is one graph with memory of its own: a
/// run copies its inputs there, starts the graph, and copies the results out. On a CPU, a run calls
/// the function again.
///
/// The function must do the same at every call and use what it refers to as long as the program
/// lives. Its tables become part of the graph. On a GPU it must neither bind ciphertexts of the
/// host nor take copies to the host.
class Program {
 public:
  /// examples: ciphertexts that bind takes. Inputs must later be as many, with elements that are no
  /// larger and have no more noise. Throws InvalidArgument for results that are not in the memory
  /// of the evaluator's device.
  Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
          std::span<const Ciphertext* const> examples);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// inputs: ciphertexts that bind takes. The errors of their elements must be independent: a sum
  /// of several ciphertexts, or one that is given twice, is refreshed before. Throws
  /// InvalidArgument, which says what differs, and for a call from its own function. Threads take
  /// turns.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs);
  std::size_t arity() const { return inputs_.size(); }
  /// The bytes of device memory that it keeps, inputs included.
  std::size_t bytes() const;

 private:
  void check(std::span<const Ciphertext> inputs) const;

  const std::shared_ptr<const Evaluator> evaluator_;
  const CiphertextFunction function_;
  Turns turns_;
  std::vector<Ciphertext> inputs_, outputs_;  // the blocks that the recording reads and writes
  std::unique_ptr<device::Graph> graph_;
};

}  // namespace jali::tfhe
