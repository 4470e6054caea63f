// Multiplication mod q in double-precision fused multiply-adds: the words of 52 bits on machines
// whose floating-point units are wider than their integer ones. Rounding to nearest is assumed, and
// that the compiler does not contract or reassociate.
#pragma once

#include <cmath>
#include <cstdint>

namespace jali::arith {

/// q < 2^50. Residues are doubles that hold integers.
class Fp64Modulus {
 public:
  explicit Fp64Modulus(std::uint64_t q)
      : q_(static_cast<double>(q)), inverse_(1.0 / static_cast<double>(q)) {}

  /// a b mod q in (-q, q), for integers |a|, |b| < q.
  /// h + l = a b exactly; the quotient b = rint(h / q) is within 3/4 of a b / q, and
  /// h - b q is an integer below 2^53, so that the fma is exact.
  double mul_lazy(double a, double b) const {
    const double h = a * b;
    const double l = std::fma(a, b, -h);
    const double quotient = std::nearbyint(h * inverse_);
    return std::fma(-quotient, q_, h) + l;
  }

  /// a b mod q in [0, q), for integers a, b in [0, q).
  double mul(double a, double b) const {
    const double r = mul_lazy(a, b);
    return r < 0 ? r + q_ : r;
  }

  /// The same on integers in [0, q).
  std::uint64_t mul(std::uint64_t a, std::uint64_t b) const {
    return static_cast<std::uint64_t>(mul(static_cast<double>(a), static_cast<double>(b)));
  }

 private:
  double q_;
  double inverse_;
};

}  // namespace jali::arith
