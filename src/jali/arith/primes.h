// Primes q = 1 modulo 2N, which are the moduli that have a negacyclic transform of length N, and
// their roots of unity.
#pragma once

#include <cstdint>
#include <optional>

namespace jali::arith {

/// Exact for every 64-bit integer: Miller-Rabin with the first twelve primes as bases, which
/// Sorenson and Webster (2015) prove to be enough below 3.3e24.
bool is_prime(std::uint64_t n);

/// The largest prime p = 1 mod m with low <= p < bound, or empty if there is none. m is even and at
/// least 2.
std::optional<std::uint64_t> prime_below(std::uint64_t bound, std::uint64_t m,
                                         std::uint64_t low = 2);
/// The smallest prime p = 1 mod m with bound <= p < high, or empty if there is none. Throws
/// InvalidArgument if high exceeds 2^64 - 1 - m.
std::optional<std::uint64_t> prime_from(std::uint64_t bound, std::uint64_t m, std::uint64_t high);

/// Gives the primes p = 1 mod m in [low, high) in the order of their distance from `target`. Of two
/// equally near ones the smaller comes first.
class PrimesNear {
 public:
  PrimesNear(std::uint64_t target, std::uint64_t m, std::uint64_t low, std::uint64_t high);
  /// The next prime, or empty if the interval has no more.
  std::optional<std::uint64_t> next();

 private:
  std::uint64_t target_, m_, low_, high_;
  std::optional<std::uint64_t> below_, above_;
};

/// The smallest primitive `order`-th root of unity modulo the prime q. Throws InvalidArgument
/// unless q is an odd prime and order is a power of two that divides q - 1.
std::uint64_t primitive_root(std::uint64_t q, std::uint64_t order);

}  // namespace jali::arith
