// One input on its way through the operations, and what an operation is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../runner.h"
#include "world.h"

namespace jali::fuzz {

using ckks::Ciphertext;
using Complex = std::complex<double>;

constexpr std::size_t kMaxBatch = 8;  // bounds the work on one input

/// One input on its way through the operations.
class Run {
 public:
  Run(const World& w, Stream& stream);

  const World& world;
  Stream& in;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::optional<ckks::AutoEvaluator> automatic;
  std::optional<ckks::ArrayEvaluator> arrays;
  Pool<Ciphertext> pool;

  const Ciphertext& any() { return pool.any(in); }
  const ckks::Evaluator& ev() const { return *evaluator; }
  int level() { return in.once_in(8) ? in.integer() : static_cast<int>(in.below(5)); }
  int steps() { return in.once_in(4) ? in.integer() : 1 << in.below(10); }
  std::size_t count() {
    return in.once_in(4) ? static_cast<std::size_t>(in.integer()) : in.below(9);
  }
  double scale() {
    return in.once_in(3) ? in.number() : world.o.params->scale(static_cast<int>(in.below(4)));
  }

  std::vector<Complex> vector(const Ciphertext& x);
  /// Of the shape of x where the input does not say otherwise.
  ckks::Plaintext plaintext(const Ciphertext& x);

  /// Looks at a result.
  void keep(Ciphertext x);
  void keep(std::vector<Ciphertext> all) {
    for (Ciphertext& x : all) keep(std::move(x));
  }

  /// Its figures are numbers, and its bytes are read again to the same bytes.
  void examine(const Ciphertext& x) const;
};

/// Its name is that of a report.
using Operation = std::pair<const char*, void (*)(Run&)>;

// Each in the file of its name; in the order of the headers.
std::span<const Operation> evaluator_operations();
std::span<const Operation> auto_evaluator_operations();
std::span<const Operation> array_evaluator_operations();
std::span<const Operation> circuit_operations();
std::span<const Operation> batch_operations();
std::span<const Operation> client_operations();
std::span<const Operation> bootstrap_operations();

}  // namespace jali::fuzz
