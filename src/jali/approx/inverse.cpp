#include "jali/approx/inverse.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "jali/approx/remez.h"
#include "jali/base/error.h"

namespace jali::approx {

namespace {

void check(const Interval& on) {
  on.check();
  require<InvalidArgument>(
      on.low > 0,
      "the interval of an inverse and of roots lies above 0: at 0 there is a "
      "pole or a branch point. Choose the least number that occurs as its low end");
}

/// A bound on |1 - x p(x)^power| on p's interval.
Real residual(const Series& p, int power) {
  const std::size_t degree = static_cast<std::size_t>(power) * p.degree() + 1;
  const Grid grid = grid_for(degree, p.coefficients.size());
  const Cosines cosines(grid.nodes);
  const Real off = rounding_of(p);
  Real worst = 0;
  for (std::size_t k = 0; k < grid.nodes; ++k) {
    const Real x = p.on.middle() + p.on.half() * cosines.node(k), y = p(x);
    const Real product = power == 1 ? x * y : x * y * y;
    const Real rounding = power == 1 ? x * off : x * off * (2 * std::fabs(y) + off);
    worst = std::max(worst,
                     std::fabs(1 - product) + rounding + 8 * kEpsilon * (1 + std::fabs(product)));
  }
  return grid.factor * worst;
}

double rounded_up(Real x) {
  return std::nextafter(static_cast<double>(x), std::numeric_limits<double>::infinity());
}

}  // namespace

double inverse_error(const Interval& on, std::size_t degree) {
  check(on);
  const Real reach = std::acosh(on.middle() / on.half());
  return static_cast<double>(1 / std::cosh(static_cast<Real>(degree + 1) * reach));
}

Relative inverse(const Interval& on, std::size_t degree) {
  check(on);
  Relative out{series_of([](Real x) { return 1 / x; }, on, degree), 0};
  out.error = rounded_up(residual(out.polynomial, 1));
  return out;
}

Relative inverse_square_root(const Interval& on, std::size_t degree) {
  check(on);
  const auto f = [](Real x) { return 1 / std::sqrt(x); };
  Relative out;
  out.polynomial = degree > kMostRemezDegree
                       ? series_of(f, on, degree)
                       : best_polynomial({f, [](Real x) { return std::sqrt(x); }, {on}, degree});
  const Real r = residual(out.polynomial, 2);
  out.error = r < 1 ? rounded_up((r / (1 + std::sqrt(1 - r))) * (1 + 4 * kEpsilon))
                    : std::numeric_limits<double>::infinity();
  return out;
}

}  // namespace jali::approx
