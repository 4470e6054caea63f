// The sign of numbers that are not too near 0, by a composition of odd polynomials (E. Lee, J.-W.
// Lee, J.-S. No, Y.-S. Kim, IEEE TDSC 2021, eprint 2020/834): each brings its values nearer to -1
// and 1, and is the best for what the one before it leaves.
#pragma once

#include <vector>

#include "jali/approx/series.h"

namespace jali::approx {

struct Composite {
  /// They are applied one after the other. The first is on [-bound, bound]. All others are on [-1,
  /// 1], where the value of the one before is proven to lie.
  std::vector<Series> stages;
  double gap = 0;  // for |x| < gap, y has the sign of x and |y| <= 1 + error
  double error = 0;  // | |y| - 1 | for gap <= |x| <= bound, proven; the sign is that of x

  int depth() const;
  Real operator()(Real x) const;
};

/// ceil(log2(degree + 1)), the levels that a polynomial in the Chebyshev basis takes on [-1, 1].
int depth_of(std::size_t degree);

/// The composition with the fewest levels, found by dynamic programming over the degrees 3, 7, 15
/// and 31. If two beginnings take equal levels, the one that leaves the shorter interval is better
/// for every end. Then degrees are lowered as far as the error allows. Throws InvalidArgument
/// unless gap < bound, gap / bound >= 2^-20 and 2^-40 <= error < 1.
Composite sign(double bound, double gap, double error);

}  // namespace jali::approx
