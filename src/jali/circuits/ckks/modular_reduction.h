// x - round(x) for x near an integer, computed as the sine 1/(2 pi) sin(2 pi x). The sine comes
// from a polynomial in the Chebyshev basis for a cosine, and from double-angle steps. The series of
// arcsin, which is optional, corrects the sine (Han and Ki 2020; Bossuat et al. 2021; Lee et al.
// 2021).
#pragma once

#include <numbers>
#include <optional>
#include <vector>

#include "jali/circuits/ckks/polynomial.h"

namespace jali::circuits {

inline constexpr double kTurn = 2 * std::numbers::pi;  // of the sine

struct ReductionOptions {
  int range = 16;  // K: |x| <= K
  int degree = 30;  // of the polynomial for the cosine; even
  int doublings = 3;  // r, 0 to 16
  int inverse_sine = 1;  // degree of the series of arcsin: 1 (none), 3, 5 or 7
  /// If it is positive, x is taken to be a sum of weight + 1 numbers uniform in [-1/2, 1/2), and
  /// the polynomial is a least-squares fit whose error may be larger where x is rarer. If it is 0,
  /// all x count alike, and the polynomial is the interpolant at the Chebyshev nodes.
  int weight = 0;
};

/// No error of a slot that bootstrapping's own roundings and key switches leave is more than this
/// many standard deviations, except with probability 2^-128. Each of them is a sum of random
/// numbers times what other random numbers make of it: at most three polynomials are multiplied,
/// slot by slot (a rounded diagonal, the sparse secret, and the ciphertext's uniform part). A slot
/// of each is close to a complex normal number X, with P(|X| > a) = exp(-a^2) if its mean square is
/// 1, and for a b c = u
///   a^2 + b^2 + c^2 >= 3 u^(2/3), so that P(|X Y Z| > 256) is about exp(-121) = 2^-174,
/// and 2^-157 for 2^17 slots. Sums of such errors have lighter tails: for given keys the parts that
/// are drawn later are independent, and their variances add up.
inline constexpr double kCircuitDeviations = 256;

/// With u = (x - 1/4) / (K + 1/4), it computes
///   y_0 = p(u) ~ cos(2 pi (x - 1/4) / 2^r),  y_{i+1} = 2 y_i^2 - 1,  y_r ~ cos(2 pi (x - 1/4)) =
///   sin(2 pi x).
class ModularReduction {
 public:
  explicit ModularReduction(const ReductionOptions& options);

  const ReductionOptions& options() const { return options_; }
  /// The levels that apply takes.
  int levels() const;
  /// How many products apply() relinearises, by the levels taken before.
  std::vector<std::size_t> key_switches() const;
  /// The slots of an input hold x times this factor, 1 / (K + 1/4).
  double input_factor() const { return 1 / (options_.range + 0.25); }
  /// x - round(x), up to error(), for real slots with |x| <= K. The operand holds x input_factor(),
  /// at any scale. The result lies levels() lower, at exactly `scale`. Throws DepthExhausted if
  /// there are fewer levels. The estimate takes x for a sum of `weight` + 1 numbers uniform in
  /// [-1/2, 1/2) that is close to an integer. It counts the noise of x, all roundings, and the
  /// error of the cosine's polynomial; it does not count that sin(2 pi x) is not 2 pi x. wrong: how
  /// large the cosine's error may be in the bound on the error; without it, as large as
  /// interpolation_error().
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x, double scale,
                         int weight, std::optional<double> wrong = {}) const;

  /// The function that apply computes, on a number in the clear.
  double operator()(double x) const;
  /// The maximum of |f(x) - (x - round(x))| over samples of |x| <= K within `distance` of an
  /// integer.
  double error(double distance) const;
  /// The error of the cosine's polynomial alone: the largest difference between f and what the
  /// exact sine would give, over samples of |x| <= K within 0.01 of an integer.
  double interpolation_error() const { return wrong_; }
  /// The error of the cosine's polynomial alone within `distance` of `integer` and of -integer.
  double interpolation_error_at(int integer, double distance) const;
  /// The root mean square of that error at the integers, each with the probability that it is the
  /// rounded sum of weight + 1 numbers uniform in [-1/2, 1/2).
  double interpolation_error_rms(int weight) const;

 private:
  ReductionOptions options_;
  /// The variance of the coefficients of sin(2 pi x), over the square of its scale, and that of the
  /// integer for which it is largest.
  struct Variance {
    double mean = 0, largest = 0;
  };
  /// It counts a rounding of variance `rounding` of every power and node of the polynomial at its
  /// own scale, and one at scales[i] after doubling i. scales[0] is the scale of the polynomial's
  /// result.
  Variance variance(const ckks::Params& params, const ckks::Ciphertext& x,
                    const std::vector<double>& scales, double rounding, int weight) const;
  /// A bound on the error of sin(2 pi x) in every slot, in message units, if each of these
  /// roundings is at most `rounding`.
  double bound(const ckks::Params& params, const ckks::Ciphertext& x,
               const std::vector<double>& scales, double rounding) const;

  double cosine_error(int integer, double offset) const;

  Polynomial cosine_, arcsine_;
  PolynomialPlan plan_;
  double wrong_ = 0;  // interpolation_error()
};

}  // namespace jali::circuits
