// The engine's operations one by one, on random residues: timed, priced and checked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jali/backend/engine.h"

namespace jali::python {

/// What an operation works on: ciphertext polynomials of `limbs` primes in digits of `alpha`, and `special`
/// primes for P.
struct EngineShape {
  int log_n = 14;
  int limbs = 1;
  int special = 0;
  int alpha = 1;
  std::size_t batch = 1;
  int prime_bits = 0;  // 0: as many as the word has
};

class EngineBench {
 public:
  EngineBench(const std::string& device, Word word, const EngineShape& shape, int threads,
              std::map<std::string, std::string> variants);
  ~EngineBench();
  EngineBench(const EngineBench&) = delete;
  EngineBench& operator=(const EngineBench&) = delete;

  std::string engine() const;
  double prime_bits() const;
  static std::vector<std::string> operations();
  /// Whether every byte that the operation writes is what the reference engine writes: the portable CPU
  /// engine for a CPU, the CPU engine for a GPU. Inputs are fresh and random.
  bool check(const std::string& operation);
  struct Cost {
    double mults = 0;  // modular multiplications of its definition
    double bytes = 0;  // every operand and result once
    double in_place = 0;  // of these, what is written where it was read
    double stream_bytes = 0;  // of ChaCha20
    double complex_butterflies = 0;  // of the embedding
  };
  Cost cost(const std::string& operation);
  /// Seconds of one operation, over and over for about `seconds`. On a device of its own, a figure is the
  /// mean of as many as fill some milliseconds, waited for at their end.
  std::vector<double> run(const std::string& operation, double seconds);
  /// Its kernels on a GPU, each timed alone; nothing on a CPU. Throws InvalidArgument where the host takes part.
  std::vector<backend::StepTime> steps(const std::string& operation);

 private:
  struct Side;
  EngineShape shape_;
  std::unique_ptr<Side> side_, reference_;
};

}  // namespace jali::python
