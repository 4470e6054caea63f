// A program is a function of ciphertexts that is recorded once, and run again without the work of
// the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "jali/rlwe/recorded.h"
#include "jali/schemes/ckks/evaluator.h"

namespace jali::ckks {

/// From ciphertexts on the evaluator's device to ciphertexts there.
using CiphertextFunction = rlwe::Recorded<Evaluator>::Function;

/// A function whose operands have fixed shapes. On a GPU it is one graph with memory of its own: a
/// run copies its inputs there, starts the graph, and copies the results out. On a CPU, a run calls
/// the function again.
///
/// The function must do the same at every call and use what it refers to (evaluator, keys, encoded
/// plaintexts) as long as the program lives. On a GPU it must not encode: a multiplication by
/// numbers in the clear uploads them, so they are encoded beforehand.
class Program {
 public:
  /// examples: ciphertexts in any memory. Inputs must later have their levels, scales, batches and
  /// packings, and no more noise than they have.
  Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
          std::span<const Ciphertext* const> examples);
  /// The same for examples on the evaluator's device, which become the program's own inputs: a run
  /// overwrites them.
  Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
          std::shared_ptr<std::vector<Ciphertext>> examples);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// inputs: in any memory, shaped like the examples and with no more noise than they have. The
  /// results are on the device. Throws InvalidArgument, naming what differs, and for a call from
  /// its own function. Threads take turns.
  std::vector<Ciphertext> run(std::span<const Ciphertext* const> inputs);
  std::size_t arity() const { return recorded_.examples().size(); }
  /// The bytes of device memory that it keeps, inputs included.
  std::size_t bytes() const { return recorded_.bytes(); }

 private:
  void check(std::size_t index, const Ciphertext& input) const;
  void check_apart(std::span<const Ciphertext* const> inputs) const;

  rlwe::Recorded<Evaluator> recorded_;
};

}  // namespace jali::ckks
