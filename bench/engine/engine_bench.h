// Checks, counts and times the engine's operations one by one, on random residues.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/engine/measured.h"
#include "bench/engine/operations.h"

namespace jali::bench {

class EngineBench {
 public:
  EngineBench(const std::string& device, Word word, const Shape& shape, int threads,
              std::map<std::string, std::string> variants);

  std::string engine() const { return measured_->engine->name(); }
  /// log2 of the largest prime.
  double prime_bits() const;
  /// Whether the operation writes the same bytes as the reference engine, on fresh random inputs.
  /// The reference of a CPU is the portable CPU engine, that of a GPU is the CPU engine.
  bool check(const std::string& name);
  Cost cost(const std::string& name);
  /// See timed().
  std::vector<double> run(const std::string& name, double seconds);
  /// The operation's kernels on a GPU, each timed alone; empty on a CPU. Throws InvalidArgument if
  /// the host takes part in the operation.
  std::vector<backend::StepTime> steps(const std::string& name);

 private:
  Body prepare(Operands& side, const std::string& name, const random::Seed& seed);

  std::unique_ptr<Operands> measured_, reference_;
};

}  // namespace jali::bench
