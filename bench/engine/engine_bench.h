// The engine's operations one by one, on random residues: timed, priced and checked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/engine/operations.h"

namespace jali::bench {

class EngineBench {
 public:
  EngineBench(const std::string& device, Word word, const Shape& shape, int threads,
              std::map<std::string, std::string> variants);

  std::string engine() const { return measured_->engine->name(); }
  /// log2 of the largest prime.
  double prime_bits() const;
  /// Whether every byte that the operation writes is what the reference engine writes: the portable CPU
  /// engine for a CPU, the CPU engine for a GPU. Inputs are fresh and random.
  bool check(const std::string& name);
  struct Cost {
    double mults = 0;  // modular multiplications of its definition
    double bytes = 0;  // every operand and result once
    double in_place = 0;  // of these, what is written where it was read
    double stream_bytes = 0;  // of ChaCha20
    double complex_butterflies = 0;  // of the embedding
  };
  Cost cost(const std::string& name);
  /// Seconds of one operation, over and over for about `seconds`. On a device of its own, a figure is the
  /// mean of as many as fill some milliseconds, waited for at their end.
  std::vector<double> run(const std::string& name, double seconds);
  /// Its kernels on a GPU, each timed alone; nothing on a CPU. Throws InvalidArgument where the host takes part.
  std::vector<backend::StepTime> steps(const std::string& name);

 private:
  Body prepare(Operands& side, const std::string& name, const random::Seed& seed);

  std::unique_ptr<Operands> measured_, reference_;
};

}  // namespace jali::bench
