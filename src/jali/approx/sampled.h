// Polynomials for functions of which only values are known. Their error is measured, not proven.
#pragma once

#include <cstddef>

#include "jali/approx/series.h"

namespace jali::approx {

struct Measured {
  Series polynomial;
  /// The largest |p(x) - f(x)| that was seen. It may be larger between the points that were looked
  /// at.
  double error = 0;
};

/// The polynomial of at most this degree that equals f at the Chebyshev nodes. A coefficient that
/// is no larger than the rounding errors of f's values is set to 0. So an even function gets no odd
/// coefficients, and a polynomial of lower degree gets its own degree. Throws InvalidArgument if f
/// is not finite at a point that is looked at; the ends are. Throws it, too, if somewhere p is more
/// than twice as far from f as any two values of f at nodes are from each other: then there is a
/// pole, or f is far too steep for the degree.
Measured interpolate(const Function& f, const Interval& on, std::size_t degree);
/// The polynomial whose largest error is the least (Remez), of a degree up to kMostRemezDegree. It
/// throws likewise.
Measured minimax(const Function& f, const Interval& on, std::size_t degree);

}  // namespace jali::approx
