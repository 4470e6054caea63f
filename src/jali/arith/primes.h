// Primes = 1 modulo 2N, the moduli that have a negacyclic transform of length N, and their roots.
#pragma once

#include <cstdint>
#include <optional>

namespace jali::arith {

/// Deterministic for every 64-bit integer (Miller-Rabin with the first twelve primes as bases:
/// Sorenson and Webster 2015 prove that enough below 3.3e24).
bool is_prime(std::uint64_t n);

/// The largest prime p = 1 mod m with low <= p < bound; empty when there is none. m >= 2, even.
std::optional<std::uint64_t> prime_below(std::uint64_t bound, std::uint64_t m,
                                         std::uint64_t low = 2);
/// The smallest prime p = 1 mod m with bound <= p < high; empty when there is none.
std::optional<std::uint64_t> prime_from(std::uint64_t bound, std::uint64_t m, std::uint64_t high);

/// Primes = 1 mod m in [low, high) from the nearest to `target` outwards; on a tie the smaller
/// first.
class PrimesNear {
 public:
  PrimesNear(std::uint64_t target, std::uint64_t m, std::uint64_t low, std::uint64_t high);
  /// The next one; empty when the interval is used up.
  std::optional<std::uint64_t> next();

 private:
  std::uint64_t target_, m_, low_, high_;
  std::optional<std::uint64_t> below_, above_;
};

/// The smallest primitive `order`-th root of unity modulo the prime q; order is a power of two that
/// divides q - 1. Throws InvalidArgument when it does not.
std::uint64_t primitive_root(std::uint64_t q, std::uint64_t order);

}  // namespace jali::arith
