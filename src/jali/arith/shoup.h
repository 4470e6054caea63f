// Multiplication by a constant w mod q with a precomputed quotient (V. Shoup, NTL):
//   w' = floor(w beta / q),  x w - floor(x w' / beta) q  =  x w mod q  or that plus q,
// because x w / q - x w' / beta lies in [0, x / beta) and the floor loses less than 1 more.
#pragma once

#include <cstdint>

#include "jali/arith/wide.h"

namespace jali::arith {

/// A constant and its quotient for beta = 2^beta_bits.
struct ShoupConstant {
  std::uint64_t value = 0;     // w < q
  std::uint64_t quotient = 0;  // floor(w 2^beta_bits / q), < 2^beta_bits
};

/// w < q < 2^beta_bits, beta_bits <= 64.
constexpr ShoupConstant shoup_constant(std::uint64_t w, std::uint64_t q, int beta_bits) {
  return {w, static_cast<std::uint64_t>((static_cast<uint128>(w) << beta_bits) / q)};
}

/// x w mod q in [0, 2q), for any x < 2^64; q < 2^63; the quotient for beta = 2^64.
constexpr std::uint64_t mul_shoup_lazy(std::uint64_t x, ShoupConstant w, std::uint64_t q) {
  return x * w.value - mul_high(x, w.quotient) * q;
}

/// x w mod q in [0, q), for any x < 2^64; q < 2^63; the quotient for beta = 2^64.
constexpr std::uint64_t mul_shoup(std::uint64_t x, ShoupConstant w, std::uint64_t q) {
  const std::uint64_t r = mul_shoup_lazy(x, w, q);
  return r >= q ? r - q : r;
}

}  // namespace jali::arith
