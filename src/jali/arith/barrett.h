// Reduction of a product by a precomputed reciprocal (P. Barrett, Crypto '86; HAC 14.42, base 2).
#pragma once

#include <bit>
#include <cstdint>

#include "jali/arith/wide.h"

namespace jali::arith {

/// For q in [2, 2^61): with k the bit length of q and mu = floor(2^(2k) / q),
/// floor(floor(x / 2^(k-1)) mu / 2^(k+1)) is the quotient of x < 2^(2k) by q, or up to 2 less.
class Barrett {
 public:
  constexpr explicit Barrett(std::uint64_t q)
      : q_(q),
        k_(std::bit_width(q)),
        mu_(static_cast<std::uint64_t>((static_cast<uint128>(1) << (2 * k_)) / q)) {}

  /// x mod q in [0, 3q), for x < 2^(2k); in particular for every x < q^2.
  constexpr std::uint64_t reduce_lazy(uint128 x) const {
    const auto top = static_cast<std::uint64_t>(x >> (k_ - 1));  // < 2^(k+1) <= 2^62
    const auto quotient = static_cast<std::uint64_t>((static_cast<uint128>(top) * mu_) >> (k_ + 1));
    return static_cast<std::uint64_t>(x) - quotient * q_;
  }

  /// x mod q in [0, q), for x < 2^(2k).
  constexpr std::uint64_t reduce(uint128 x) const {
    std::uint64_t r = reduce_lazy(x);
    r = r >= 2 * q_ ? r - 2 * q_ : r;
    return r >= q_ ? r - q_ : r;
  }

 private:
  std::uint64_t q_;
  int k_;
  std::uint64_t mu_;  // <= 2^(k+1)
};

}  // namespace jali::arith
