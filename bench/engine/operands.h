// One engine, and the operands of one of its operations in its memory.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "jali/backend/embedding_ops.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/device/buffer.h"
#include "jali/random/prng.h"

namespace jali::bench {

/// What an operation works on: ciphertext polynomials of `limbs` primes in digits of `alpha`, and `special`
/// primes for P.
struct Shape {
  int log_n = 14;
  int limbs = 1;
  int special = 0;
  int alpha = 1;
  std::size_t batch = 1;
  int prime_bits = 0;  // 0: as many as the word has
};

/// The largest primes of so many bits that are 1 modulo 2 n. Throws InvalidArgument if there are fewer.
std::vector<std::uint64_t> largest_primes(int bits, std::size_t n, std::size_t count);

class Operands {
 public:
  Operands(std::shared_ptr<const backend::Engine> made, const Shape& of);

  const Shape shape;
  const std::shared_ptr<const backend::Engine> engine;
  std::vector<PrimeIndex> all;             // of Q, then of P
  std::span<const PrimeIndex> q;           // of Q
  std::vector<std::uint32_t> digits, ids;  // limbs of each digit; 0, 1, 2 ..
  std::vector<std::uint64_t> scalars;      // one a limb of Q
  random::Seed seed{};                     // of everything random

  /// Drops the operands of the operation before.
  void start(const random::Seed& from);
  /// Gives the memory of all operands back.
  void release();
  /// Waits until the engine has done everything asked of it.
  void finish() const;

  // Blocks, in the engine's memory.
  backend::View empty(std::span<const PrimeIndex> primes);
  /// Random residues, the same on every engine.
  backend::View operand(std::span<const PrimeIndex> primes);
  /// Poisoned, and compared afterwards.
  backend::View result(std::span<const PrimeIndex> primes);
  /// Random residues that are worked on in place, and compared afterwards.
  backend::View changed(std::span<const PrimeIndex> primes);
  /// One block of digits, as mod_up writes them.
  backend::View lifted(bool written);
  backend::KeyView key();

  /// Random numbers in the host's memory, the same on every engine.
  void host_operands();
  std::vector<std::int64_t> integers;
  std::vector<double> doubles;
  std::vector<std::uint64_t> words;
  std::vector<backend::Complex> slots;
  std::unique_ptr<backend::Embedding> embedding;
  int log_slots() const { return shape.log_n - 1; }
  std::size_t words_of_q() const;
  /// The words in the engine's memory.
  std::span<std::uint64_t> words_there(bool compared);

  const std::vector<std::pair<void*, std::size_t>>& results() const { return results_; }

 private:
  std::size_t bytes(std::span<const PrimeIndex> primes) const;

  std::shared_ptr<device::Pool> pool_;
  std::vector<device::Buffer> blocks_;
  std::vector<std::pair<void*, std::size_t>> results_;
  std::uint32_t index_ = 0;  // of the stream of random residues
};

}  // namespace jali::bench
