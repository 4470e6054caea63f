// Functions that are analytic around an interval, by polynomials whose error is proven on all of
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "jali/approx/series.h"

namespace jali::approx {

/// A function and what is known of it in the complex plane.
struct Smooth {
  const char* name = "";
  Function value;  // right to 64 units in the last place of the largest value on the interval
  /// A bound on |f(z)| for re_low <= Re z <= re_high, |Im z| <= im; infinity if f is not analytic
  /// there.
  std::function<Real(Real re_low, Real re_high, Real im)> bound;
  /// On an interval around 0, f(x) - offset - slope x has this parity. It decides which
  /// coefficients are 0.
  Parity parity = Parity::none;
  Real offset = 0, slope = 0;
};

Smooth sigmoid();  // 1 / (1 + exp(-x))
Smooth tanh();
Smooth gelu();  // x Phi(x), with the normal distribution and not the formula by tanh
Smooth silu();  // x sigmoid(x)
Smooth exp();
Smooth log();  // the intervals of these two lie above 0
Smooth square_root();

struct Approximation {
  Series polynomial;
  double error = 0;  // |p(x) - f(x)| is not above it for any x of the interval
};

/// What bounds |f - p| everywhere, p of any kind. A polynomial q of degree m with |f - q| <= R_m
/// exists if f is analytic in an ellipse around the interval: R_m = 2 M rho^-m / (rho - 1) for |f|
/// <= M in the ellipse of foci low and high whose semi-axes add up to rho half-lengths (L.
/// Trefethen, Approximation Theory and Approximation Practice, theorem 8.2). So
///   max |f - p| <= R_m + F (max at the nodes |f - p| + R_m),
/// with the factor F of grid_for(m). m and rho are chosen so that R_m hardly counts.
double proven_error(const Smooth& f, const Series& p);

/// The best polynomial of this degree (of at most that, if f has a parity), at most kMostDegree.
/// Throws InvalidArgument if f is not analytic around the interval.
Approximation approximate(const Smooth& f, const Interval& on, std::size_t degree);
/// One of the least degree, or nearly, whose error is at most `error`. Throws InvalidArgument if
/// none of at most kMostDegree has it, saying what would help.
Approximation approximate_within(const Smooth& f, const Interval& on, double error);

inline constexpr std::size_t kMostDegree = 4095;  // 12 levels

}  // namespace jali::approx
