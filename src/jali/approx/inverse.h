// Polynomials near 1/x and 1/sqrt(x), measured by the relative error: what Newton's steps start
// from.
#pragma once

#include <cstddef>

#include "jali/approx/series.h"

namespace jali::approx {

struct Relative {
  Series polynomial;
  double error = 0;  // |p(x) / f(x) - 1| is not above it for any x of the interval, proven
};

/// The best of its degree for 1/x: 1 - x p(x) = T_{d+1}(u) / T_{d+1}(u_0) is the polynomial of
/// degree d + 1 that is 1 at x = 0 and smallest on the interval. p meets 1/x at the Chebyshev
/// nodes, where T_{d+1} is 0. The interval lies above 0.
Relative inverse(const Interval& on, std::size_t degree);
/// What its error is, but for rounding: 1 / T_{d+1}(u_0).
double inverse_error(const Interval& on, std::size_t degree);

/// The best of its degree for 1/sqrt(x), at most kMostRemezDegree, above that the interpolant. With
/// 1 - x p(x)^2 = r, bounded as a polynomial of degree 2 d + 1, the relative error is at most 1 -
/// sqrt(1 - |r|).
Relative inverse_square_root(const Interval& on, std::size_t degree);

}  // namespace jali::approx
