// Arithmetic modulo a prime by the definition, all of it through the 128-bit remainder. The oracle
// shares none of it with arith/, so that an error there shows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::backend::ref {

// Operands are in [0, q), q < 2^63.
inline std::uint64_t add(std::uint64_t a, std::uint64_t b, std::uint64_t q) { return (a + b) % q; }
inline std::uint64_t sub(std::uint64_t a, std::uint64_t b, std::uint64_t q) {
  return (a + q - b) % q;
}
inline std::uint64_t mul(std::uint64_t a, std::uint64_t b, std::uint64_t q) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b % q);
}
std::uint64_t power(std::uint64_t a, std::uint64_t e, std::uint64_t q);
/// a^-1 = a^(q-2); a is not 0.
std::uint64_t inverse(std::uint64_t a, std::uint64_t q);

/// Exact for every 64-bit number: Miller-Rabin with the first twelve primes as bases.
bool is_prime(std::uint64_t n);

/// The smallest psi with psi^N = -1, by trying every one of the N; q = 1 mod 2N, N a power of two.
std::uint64_t smallest_root(std::uint64_t q, std::size_t n);

}  // namespace jali::backend::ref
