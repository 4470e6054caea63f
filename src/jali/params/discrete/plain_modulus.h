// Arithmetic modulo T, the modulus of the numbers that are encrypted.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "jali/arith/modulus.h"

namespace jali::discrete {

/// A modulus T: any number from 2 to 2^61 - 1, or a power of two up to 2^64. Operands and results
/// are in [0, T) unless said otherwise. No branch and no address depends on them, except in
/// inverse(): what arith::Modulus writes as a choice, which a compiler may make a branch of, is a
/// mask here (tests/timing).
class PlainModulus {
 public:
  /// value: T; 0 stands for 2^64.
  explicit PlainModulus(std::uint64_t value)
      : value_(value),
        power_of_two_((value & (value - 1)) == 0),
        general_(any(value)),
        barrett_(any(value)),
        one_(general_.shoup(1)),
        beta_(general_.shoup(general_.reduce(static_cast<arith::uint128>(1) << 64))) {
    offset_ = reduce(kTwoTo63);
  }

  /// T; 0 stands for 2^64.
  std::uint64_t value() const { return value_; }
  bool is_power_of_two() const { return power_of_two_; }
  double as_double() const { return value_ == 0 ? 0x1p64 : static_cast<double>(value_); }
  /// T - 1.
  std::uint64_t largest() const { return value_ - 1; }
  /// The numbers from low() to high() are those nearest to 0 that T numbers are: for an odd T, from
  /// -(T - 1) / 2 to (T - 1) / 2; for an even one, from -T / 2 to T / 2 - 1.
  std::int64_t low() const { return -static_cast<std::int64_t>(largest() / 2) - (odd() ? 0 : 1); }
  std::int64_t high() const { return static_cast<std::int64_t>(largest() / 2); }

  std::uint64_t reduce(std::uint64_t x) const {
    return power_of_two_ ? x & largest() : below(arith::mul_shoup_lazy(x, one_, value_), value_);
  }
  /// x + 2^63 is not negative, so that the sign of x decides no branch.
  std::uint64_t reduce_signed(std::int64_t x) const {
    const std::uint64_t shifted = static_cast<std::uint64_t>(x) + kTwoTo63;
    return sub(reduce(shifted), offset_);
  }
  std::uint64_t mul(std::uint64_t a, std::uint64_t b) const {
    if (power_of_two_) return (a * b) & largest();
    const std::uint64_t r = barrett_.reduce_lazy(static_cast<arith::uint128>(a) * b);  // < 3 T
    return below(below(r, 2 * value_), value_);
  }
  std::uint64_t sub(std::uint64_t a, std::uint64_t b) const {
    const auto borrow = static_cast<std::uint64_t>(a < b);
    return (a - b) + (value_ & (0 - borrow));
  }
  std::uint64_t neg(std::uint64_t a) const { return sub(0, a); }
  /// (a 2^64 + word) mod T.
  std::uint64_t shift_in(std::uint64_t a, std::uint64_t word) const {
    if (power_of_two_) return word & largest();
    const std::uint64_t r = arith::mul_shoup_lazy(a, beta_, value_) +
                            arith::mul_shoup_lazy(word, one_, value_);  // < 4 T
    return below(below(r, 2 * value_), value_);
  }
  /// The number from low() to high() that is a modulo T.
  std::int64_t centred(std::uint64_t a) const {
    const auto above = static_cast<std::uint64_t>(a > largest() / 2);
    return static_cast<std::int64_t>(a - (value_ & (0 - above)));
  }
  /// a^-1 modulo T, or 0 if a has no inverse.
  std::uint64_t inverse(std::uint64_t a) const {
    if (!power_of_two_) return general_.inverse(a);
    if (a % 2 == 0) return 0;
    std::uint64_t x = a;  // right modulo 2^3; each step doubles the bits
    for (int i = 0; i < 5; ++i) x *= 2 - a * x;
    return x & largest();
  }

 private:
  bool odd() const { return value_ % 2 == 1; }
  /// x modulo `bound`, for x < 2 bound.
  static std::uint64_t below(std::uint64_t x, std::uint64_t bound) {
    return x - (bound & (0 - static_cast<std::uint64_t>(x >= bound)));
  }
  static constexpr std::uint64_t kTwoTo63 = std::uint64_t{1} << 63;
  // A power of two needs none; arith::Modulus takes no modulus of 2^61 and more.
  static std::uint64_t any(std::uint64_t value) {
    return (value & (value - 1)) == 0 ? std::uint64_t{3} : value;
  }
  std::uint64_t value_;
  bool power_of_two_;
  arith::Modulus general_;
  arith::Barrett barrett_;
  arith::ShoupConstant one_, beta_;  // 1 and 2^64 modulo T
  std::uint64_t offset_ = 0;  // 2^63 mod T
};

}  // namespace jali::discrete
