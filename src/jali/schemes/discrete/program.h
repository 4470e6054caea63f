// A program is a function of ciphertexts that is recorded once, and run again without the work of
// the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "jali/rlwe/recorded.h"
#include "jali/schemes/discrete/evaluator.h"

namespace jali::discrete {

/// From ciphertexts on the evaluator's device to ciphertexts there.
using CiphertextFunction = rlwe::Recorded<Evaluator>::Function;

/// A function whose operands have fixed shapes. On a GPU it is one graph with memory of its own: a
/// run copies its inputs there, starts the graph, and copies the results out. On a CPU, a run calls
/// the function again.
///
/// The function must do the same at every call and use what it refers to (evaluator, keys, encoded
/// plaintexts) as long as the program lives. On a GPU it must not encode.
class Program {
 public:
  /// examples: ciphertexts in any memory. Inputs must later have their levels, factors and batches,
  /// no more noise than they have, and numbers within their ranges.
  Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
          std::span<const Ciphertext* const> examples);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// inputs: in any memory, and like the examples. The results are on the device. Throws
  /// InvalidArgument, naming what differs, and for a call from its own function. Threads take
  /// turns.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs);
  std::size_t arity() const { return recorded_.examples().size(); }
  /// The bytes of device memory that it keeps, inputs included.
  std::size_t bytes() const { return recorded_.bytes(); }

 private:
  void check(std::size_t index, const Ciphertext& input) const;

  rlwe::Recorded<Evaluator> recorded_;
};

}  // namespace jali::discrete
