// Functions of which nothing but values is known: approximated, measured, and refused where they are plainly not met.
#pragma once

#include <cstddef>

#include "jali/approx/series.h"

namespace jali::approx {

struct Measured {
  Series polynomial;
  double error =
      0;  // the largest |p(x) - f(x)| that was seen; between the points seen it may be larger
};

/// The polynomial of this degree, or less, that meets f at the Chebyshev nodes. Coefficients that are rounding errors of
/// f's values are 0: those of an even function are even, and a polynomial of lower degree is found again.
/// Throws InvalidArgument if f is not finite, at the ends or where it was looked at, and if somewhere p is twice as far from
/// f as any two values of f at nodes are from each other: there is a pole, or f is far too steep for the degree.
Measured interpolate(const Function& f, const Interval& on, std::size_t degree);
/// The best polynomial of the degree (Remez), which is at most kMostRemezDegree; errors likewise.
Measured minimax(const Function& f, const Interval& on, std::size_t degree);

}  // namespace jali::approx
