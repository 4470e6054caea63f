// x - round(x) for x near an integer: the sine 1/(2 pi) sin(2 pi x), by a polynomial in the Chebyshev basis for a
// cosine, double-angle steps, and where asked for the series of arcsin (Han and Ki 2020; Bossuat et al.
// 2021; Lee et al. 2021).
#pragma once

#include <vector>

#include "jali/circuits/polynomial.h"

namespace jali::circuits {

struct ReductionOptions {
  int range = 16;  // K: |x| <= K
  int degree = 30;  // of the polynomial for the cosine; even
  int doublings = 3;  // r
  int inverse_sine = 1;  // degree of the series of arcsin: 1 (none), 3, 5 or 7
  /// x is a sum of weight + 1 numbers uniform in [-1/2, 1/2): the polynomial is a least-squares fit that may be off
  /// the more, the rarer x is. 0: no x is rarer than others, and it is the interpolant at the Chebyshev nodes.
  int weight = 0;
};

/// With u = (x - 1/4) / (K + 1/4):
///   y_0 = p(u) ~ cos(2 pi (x - 1/4) / 2^r),  y_{i+1} = 2 y_i^2 - 1,  y_r = cos(2 pi (x - 1/4)) = sin(2 pi x).
class ModularReduction {
 public:
  explicit ModularReduction(const ReductionOptions& options);

  const ReductionOptions& options() const { return options_; }
  int levels() const;
  /// Inputs are to hold x times this: 1 / (K + 1/4).
  double input_factor() const { return 1 / (options_.range + 0.25); }
  /// x - round(x), up to error(): real slots, |x| <= K. x holds x input_factor() at any scale; the
  /// result lies levels() lower at exactly `scale`.
  /// The estimate takes x for a sum of `weight` + 1 numbers uniform in [-1/2, 1/2), nearly an integer, and
  /// counts the noise of x, all roundings and the cosine's error, not that of the sine.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x, double scale,
                         int weight) const;

  /// What apply computes, in the clear.
  double operator()(double x) const;
  /// max |f(x) - (x - round(x))| over |x| <= K within `distance` of an integer.
  double error(double distance) const;
  /// The same without what the sine itself is off: that of the cosine's polynomial alone.
  double interpolation_error() const;
  /// The same within `distance` of `integer` and of its negative.
  double interpolation_error_at(int integer, double distance) const;
  /// Its root mean square over sums of weight + 1 such numbers.
  double interpolation_error_rms(int weight) const;

 private:
  ReductionOptions options_;
  /// The coefficients' variance of sin(2 pi x) over the square of its scale: roundings of variance `rounding` of every
  /// power and node of the polynomial at its scale, and at scales[i] after doubling i; scales[0] is the polynomial's.
  double variance(const ckks::Params& params, const ckks::Ciphertext& x,
                  const std::vector<double>& scales, double rounding, int weight) const;
  /// A bound on every slot's error of sin(2 pi x) likewise, each rounding within `rounding`.
  double bound(const ckks::Params& params, const ckks::Ciphertext& x,
               const std::vector<double>& scales, double rounding) const;

  double cosine_error(int integer, double offset) const;

  Polynomial cosine_, arcsine_;
  PolynomialPlan plan_;
};

}  // namespace jali::circuits
