// An engine, and the operands of the operation that is measured, in the engine's memory.
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

/// The shape of an operation's operands: polynomials over the `limbs` primes of Q, in digits of
/// `alpha` limbs, and over the `special` primes of P.
struct Shape {
  int log_n = 14;
  int limbs = 1;
  int special = 0;
  int alpha = 1;
  std::size_t batch = 1;
  int prime_bits = 0;  // 0: the largest that the word allows
};

/// The `count` largest primes below 2^bits that are 1 modulo 2 n. Throws InvalidArgument if there
/// are fewer.
std::vector<std::uint64_t> largest_primes(int bits, std::size_t n, std::size_t count);

class Operands {
 public:
  Operands(std::shared_ptr<const backend::Engine> made, const Shape& of);

  const Shape shape;
  const std::shared_ptr<const backend::Engine> engine;
  std::vector<PrimeIndex> all;         // the primes of Q, then those of P
  std::span<const PrimeIndex> q;       // the primes of Q
  std::vector<std::uint32_t> digits;   // the number of limbs of each digit
  std::vector<std::uint32_t> ids;      // the index of each digit: 0, 1, 2 ..
  std::vector<std::uint64_t> scalars;  // one constant for each limb of Q
  random::Seed seed{};                 // everything random is derived from it

  /// Drops the operands of the previous operation; those that follow are random from this seed.
  void start(const random::Seed& from);
  /// Gives the memory of all operands back.
  void release();
  /// Waits until the engine has done everything asked of it.
  void finish() const;

  // The following allocate in the engine's memory.
  /// Memory that is not initialized and not compared.
  backend::View empty(std::span<const PrimeIndex> primes);
  /// Random residues, the same on every engine.
  backend::View operand(std::span<const PrimeIndex> primes);
  /// Memory for a result: filled with 0xff, and compared after the operation.
  backend::View result(std::span<const PrimeIndex> primes);
  /// Random residues that the operation changes in place, compared afterwards.
  backend::View changed(std::span<const PrimeIndex> primes);
  /// Random residues over all primes for every digit, one digit behind the other, as mod_up writes
  /// them. If `written`, they are compared after the operation.
  backend::View lifted(bool written);
  /// A random key: two polynomials over all primes for each digit.
  backend::KeyView key();

  /// Fills the members that follow with random numbers in the host's memory, the same on every
  /// engine.
  void host_operands();
  std::vector<std::int64_t> integers;
  std::vector<double> doubles;
  std::vector<std::uint64_t> words;
  std::vector<backend::Complex> slots;
  std::unique_ptr<backend::Embedding> embedding;
  int log_slots() const { return shape.log_n - 1; }
  /// The number of 64-bit words of an integer modulo Q.
  std::size_t words_of_q() const;
  /// A copy of `words` in the engine's memory. If `compared`, it is compared after the operation.
  std::span<std::uint64_t> words_there(bool compared);

  /// Address and bytes of everything that is compared.
  const std::vector<std::pair<void*, std::size_t>>& results() const { return results_; }

 private:
  std::size_t bytes(std::span<const PrimeIndex> primes) const;

  std::shared_ptr<device::Pool> pool_;
  std::vector<device::Buffer> blocks_;
  std::vector<std::pair<void*, std::size_t>> results_;
  std::uint32_t index_ = 0;  // the next stream of random residues
};

}  // namespace jali::bench
