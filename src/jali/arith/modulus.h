// Arithmetic mod q on scalars: for tables, constants and everything that is not a kernel.
#pragma once

#include <cstdint>

#include "jali/arith/barrett.h"
#include "jali/arith/shoup.h"
#include "jali/arith/wide.h"

namespace jali::arith {

/// A modulus q in [2, 2^61). Operands and results are in [0, q) unless said otherwise.
class Modulus {
 public:
  constexpr explicit Modulus(std::uint64_t q)
      : q_(q),
        barrett_(q),
        one_(shoup_constant(1 % q, q, 64)),
        beta_(shoup_constant(static_cast<std::uint64_t>((static_cast<uint128>(1) << 64) % q), q,
                             64)) {}

  constexpr std::uint64_t value() const { return q_; }

  constexpr std::uint64_t add(std::uint64_t a, std::uint64_t b) const {
    const std::uint64_t s = a + b;
    return s >= q_ ? s - q_ : s;
  }
  constexpr std::uint64_t sub(std::uint64_t a, std::uint64_t b) const {
    return a >= b ? a - b : a + q_ - b;
  }
  constexpr std::uint64_t neg(std::uint64_t a) const { return a == 0 ? 0 : q_ - a; }
  constexpr std::uint64_t mul(std::uint64_t a, std::uint64_t b) const {
    return barrett_.reduce(static_cast<uint128>(a) * b);
  }

  /// x mod q, for any x < 2^64.
  constexpr std::uint64_t reduce(std::uint64_t x) const { return mul_shoup(x, one_, q_); }
  /// x mod q, for any x < 2^128. With x = hi 2^64 + lo, Shoup's multiplication takes hi by 2^64 mod
  /// q and lo by 1. The sum lies in [0, 4q) and is then brought to [0, q).
  constexpr std::uint64_t reduce(uint128 x) const {
    std::uint64_t r = mul_shoup_lazy(static_cast<std::uint64_t>(x >> 64), beta_, q_) +
                      mul_shoup_lazy(static_cast<std::uint64_t>(x), one_, q_);
    r = r >= 2 * q_ ? r - 2 * q_ : r;
    return r >= q_ ? r - q_ : r;
  }
  /// x mod q, for any signed 64-bit x, -2^63 included.
  constexpr std::uint64_t reduce_signed(std::int64_t x) const {
    const auto u = static_cast<std::uint64_t>(x);
    return x >= 0 ? reduce(u) : neg(reduce(0 - u));
  }

  /// base^exponent; 0^0 = 1.
  constexpr std::uint64_t pow(std::uint64_t base, std::uint64_t exponent) const {
    std::uint64_t result = 1 % q_;
    for (; exponent != 0; exponent >>= 1) {
      if (exponent & 1) result = mul(result, base);
      base = mul(base, base);
    }
    return result;
  }

  /// a^-1 mod q, or 0 if a has no inverse. q need not be prime (extended Euclidean algorithm).
  constexpr std::uint64_t inverse(std::uint64_t a) const {
    std::int64_t t0 = 0, t1 = 1;
    auto r0 = static_cast<std::int64_t>(q_), r1 = static_cast<std::int64_t>(a);
    while (r1 != 0) {
      const std::int64_t quotient = r0 / r1;
      const std::int64_t t2 = t0 - quotient * t1, r2 = r0 - quotient * r1;
      t0 = t1, t1 = t2, r0 = r1, r1 = r2;
    }
    if (r0 != 1) return 0;
    return static_cast<std::uint64_t>(t0 < 0 ? t0 + static_cast<std::int64_t>(q_) : t0);
  }

  /// w as a constant for mul_shoup (beta = 2^64).
  constexpr ShoupConstant shoup(std::uint64_t w) const { return shoup_constant(w, q_, 64); }

 private:
  std::uint64_t q_;
  Barrett barrett_;
  ShoupConstant one_;   // 1 and floor(2^64 / q)
  ShoupConstant beta_;  // 2^64 mod q
};

}  // namespace jali::arith
