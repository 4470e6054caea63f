// The best polynomial of a degree: E. Remez' exchange of points, on one interval or a union of
// intervals.
#pragma once

#include <cstddef>
#include <span>

#include "jali/approx/series.h"

namespace jali::approx {

struct Problem {
  Function f;
  Function weight;  // positive; if there is none, 1
  /// In ascending order and without overlap. Of an even or odd function they are those of x >= 0;
  /// the same holds at -x.
  std::vector<Interval> on;
  std::size_t degree = 0;  // at most kMostRemezDegree
  Parity parity = Parity::none;
};

/// Every step solves a dense system. Above this degree, interpolation at the Chebyshev nodes is
/// nearly as good.
inline constexpr std::size_t kMostRemezDegree = 255;

/// The polynomial p that makes max weight(x) |p(x) - f(x)| smallest, as far as `Real` tells the
/// differences. Its interval is the hull of `on` (and of its mirror image). No bound comes with it:
/// see largest_distance and smooth.h. Throws InvalidArgument for intervals, degrees, weights and
/// functions that do not serve.
Series best_polynomial(const Problem& problem);

}  // namespace jali::approx
