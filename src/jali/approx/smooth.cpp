#include "jali/approx/smooth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "jali/approx/remez.h"
#include "jali/base/error.h"

namespace jali::approx {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

std::string text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string text(const Interval& on) { return "[" + text(on.low) + ", " + text(on.high) + "]"; }

// |1 + exp(-z)| is at least 1 if cos(Im z) >= 0, and at least |sin(Im z)| otherwise; poles are at
// odd multiples of i pi.
Real sigmoid_bound(Real im) {
  if (im <= kPi / 2) return 1;
  return im < kPi ? 1 / std::sin(im) : kInfinity;
}

Real largest(Real re_low, Real re_high, Real im) {
  return std::max(std::fabs(re_low), std::fabs(re_high)) + im;
}

Real logistic(Real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

/// rho of an ellipse around `on` in which |f| <= most, and how far it is from the interval.
struct Ellipse {
  Real rho = 0, most = kInfinity, distance = 0;
};

Ellipse ellipse_of(const Smooth& f, const Interval& on, Real rho) {
  const Real h = on.half(), wide = h * (rho + 1 / rho) / 2, high = h * (rho - 1 / rho) / 2;
  return {rho, f.bound(on.middle() - wide, on.middle() + wide, high), wide - h};
}

constexpr int kFirstEllipse = -72, kLastEllipse = 160;  // of rho - 1, from 2^-18 to 2^40
Real rho_of(int k) { return 1 + std::exp2(static_cast<Real>(k) / 4); }

/// A bound on |f'| on the interval: Cauchy's, from the ellipse for which it is smallest.
Real steepest(const Smooth& f, const Interval& on) {
  Real least = kInfinity;
  for (int k = kFirstEllipse; k <= kLastEllipse; ++k) {
    const Ellipse e = ellipse_of(f, on, rho_of(k));
    if (e.most < kInfinity) least = std::min(least, e.most / e.distance);
  }
  return least;
}

/// The ellipse with which 2 most rho^-m / (rho - 1) falls to `error` at the least m, and that m.
std::pair<Ellipse, std::size_t> best_ellipse(const Smooth& f, const Interval& on, Real error) {
  Ellipse best;
  Real least = kInfinity;
  for (int k = kFirstEllipse; k <= kLastEllipse; ++k) {
    const Ellipse e = ellipse_of(f, on, rho_of(k));
    if (!(e.most < kInfinity)) continue;
    const Real m = std::log(2 * e.most / ((e.rho - 1) * error)) / std::log(e.rho);
    if (m < least) {
      least = m;
      best = e;
    }
  }
  constexpr Real kMost = 1e6;
  require<InvalidArgument>(least < kMost, [&] {
    return std::string(f.name) + " cannot be approximated on " + text(on) +
           ": it has a pole or a branch point in it or too close to it. Choose an interval further "
           "away from that";
  });
  return {best, static_cast<std::size_t>(std::max<Real>(std::ceil(least), 1))};
}

Parity parity_on(const Smooth& f, const Interval& on) {
  return on.is_symmetric() ? f.parity : Parity::none;
}

/// f without what makes it neither even nor odd, where that is all.
Function folded(const Smooth& f, Parity parity) {
  if (parity == Parity::none) return f.value;
  return [&f](Real x) { return f.value(x) - f.offset - f.slope * x; };
}

Series unfolded(const Smooth& f, Parity parity, Series p) {
  if (parity == Parity::none) return p;
  p.coefficients.resize(std::max<std::size_t>(p.coefficients.size(), 2));
  p.coefficients[0] += static_cast<double>(f.offset);
  p.coefficients[1] += static_cast<double>(f.slope * p.on.half());
  p.coefficients.resize(p.degree() + 1);
  return p;
}

/// The largest degree of this parity up to `degree`; 0 stays 0.
std::size_t degree_of(Parity parity, std::size_t degree) {
  if (degree == 0) return 0;
  if (parity == Parity::even) return degree / 2 * 2;
  return parity == Parity::odd ? (degree + 1) / 2 * 2 - 1 : degree;
}

Series polynomial_of(const Smooth& f, const Interval& on, std::size_t degree) {
  // A constant has no room for the slope, and is none of an odd function.
  const Parity parity = degree == 0 ? Parity::none : parity_on(f, on);
  degree = degree_of(parity, degree);
  const Function g = folded(f, parity);
  if (degree > kMostRemezDegree) return unfolded(f, parity, series_of(g, on, degree, parity));
  Problem problem{g, nullptr, {on}, degree, parity};
  if (parity != Parity::none) problem.on = {{0, on.high}};
  return unfolded(f, parity, best_polynomial(problem));
}

void check(const Smooth& f, const Interval& on) {
  on.check();
  best_ellipse(f, on, 1e-6L);
}

}  // namespace

Smooth sigmoid() {
  return {"sigmoid",   logistic, [](Real, Real, Real im) { return sigmoid_bound(im); },
          Parity::odd, 0.5L,     0};
}

Smooth tanh() {  // 2 sigmoid(2 x) - 1
  return {"tanh",
          [](Real x) { return std::tanh(x); },
          [](Real, Real, Real im) { return 2 * sigmoid_bound(2 * im) + 1; },
          Parity::odd,
          0,
          0};
}

// erf(x + i y) is that of x and an integral along i y: at most 1 + 2 / sqrt(pi) |y| exp(y^2) in
// all.
Smooth gelu() {
  return {"gelu",
          [](Real x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Real>); },
          [](Real low, Real high, Real im) {
            const Real y = im / std::numbers::sqrt2_v<Real>;
            return largest(low, high, im) / 2 * (2 + 2 / std::sqrt(kPi) * y * std::exp(y * y));
          },
          Parity::even,
          0,
          0.5L};
}

Smooth silu() {
  return {"silu",
          [](Real x) { return x * logistic(x); },
          [](Real low, Real high, Real im) { return largest(low, high, im) * sigmoid_bound(im); },
          Parity::even,
          0,
          0.5L};
}

Smooth exp() {
  return {"exp", [](Real x) { return std::exp(x); },
          [](Real, Real high, Real) { return std::exp(high); }};
}

Smooth log() {
  return {"log", [](Real x) { return std::log(x); },
          [](Real low, Real high, Real im) {
            if (!(low > 0)) return kInfinity;
            return std::max(std::fabs(std::log(low)), std::fabs(std::log(high + im))) + kPi / 2;
          }};
}

Smooth square_root() {
  return {"sqrt", [](Real x) { return std::sqrt(x); },
          [](Real low, Real high, Real im) {
            return low > 0 ? std::sqrt(largest(low, high, im)) : kInfinity;
          }};
}

double proven_error(const Smooth& f, const Series& p) {
  const Interval& on = p.on;
  // What is seen at a few points, to know how small R_m has to be.
  Real seen = 0, values = 0, sum = 0;
  const Cosines few(4 * (p.degree() + 4));
  for (std::size_t k = 0; k < few.count(); ++k) {
    const Real x = on.middle() + on.half() * few.node(k), y = f.value(x);
    seen = std::max(seen, std::fabs(y - p(x)));
    values = std::max(values, std::fabs(y));
  }
  for (const double c : p.coefficients) sum += std::fabs(static_cast<Real>(c));
  const Real floor = 64 * kEpsilon * (values + sum) + std::numeric_limits<Real>::min();
  const auto [ellipse, enough] = best_ellipse(f, on, std::max(seen, floor) / 256);
  const std::size_t m = std::max(enough, p.degree() + 1);
  const Real rest = 2 * ellipse.most / (ellipse.rho - 1) *
                    std::exp(-static_cast<Real>(m) * std::log(ellipse.rho)) * (1 + 0x1p-40L);

  std::vector<std::size_t> terms;
  for (std::size_t j = 0; j < p.coefficients.size(); ++j) {
    if (p.coefficients[j] != 0) terms.push_back(j);
  }
  const Grid grid = grid_for(m, terms.size() + 1);
  const Cosines cosines(grid.nodes);
  Real worst = 0;
  for (std::size_t k = 0; k < grid.nodes; ++k) {
    const Real y = f.value(on.middle() + on.half() * cosines.node(k));
    Real difference = y;
    for (const std::size_t j : terms) difference -= p.coefficients[j] * cosines.chebyshev(j, k);
    worst = std::max(worst, std::fabs(difference));
    values = std::max(values, std::fabs(y));
  }
  // Roundings: of f, 2^-46 where double is all there is; of a sum of terms; of the node, which the
  // bound on f' makes one of f; of cosines.
  const Real each = std::max(0x1p6L * kEpsilon, Real{0x1p-56L});
  const Real rounding = each * values +
                        (static_cast<Real>(terms.size()) + 8) * kEpsilon * (sum + values) +
                        4 * kEpsilon * on.reach() * steepest(f, on);
  const Real error = rest + grid.factor * (worst + rest + rounding);
  // Rounded up.
  return std::nextafter(static_cast<double>(error * (1 + 0x1p-50L)),
                        std::numeric_limits<double>::infinity());
}

Approximation approximate(const Smooth& f, const Interval& on, std::size_t degree) {
  check(f, on);
  require<InvalidArgument>(degree <= kMostDegree, "the degree must be at most 4095");
  Approximation out{polynomial_of(f, on, degree), 0};
  out.error = proven_error(f, out.polynomial);
  return out;
}

Approximation approximate_within(const Smooth& f, const Interval& on, double error) {
  check(f, on);
  require<InvalidArgument>(error > 0 && std::isfinite(error), "an error is a positive number");
  const Parity parity = parity_on(f, on);
  const Function g = folded(f, parity);
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(std::string(f.name) + " on " + text(on) + " with an error of at most " +
                          text(error) + why);
  };
  // The coefficients of f tell the degree: what is left out adds up to the error, and the best
  // polynomial is a little better than that.
  std::vector<Real> c;
  for (std::size_t count = 64;; count *= 2) {
    const Cosines cosines(count);
    std::vector<Real> values(count);
    for (std::size_t k = 0; k < count; ++k)
      values[k] = g(on.middle() + on.half() * cosines.node(k));
    c = coefficients_of(values, count - 1);
    Real last = 0, largest = 0;
    for (std::size_t j = 0; j < count; ++j) {
      largest = std::max(largest, std::fabs(c[j]));
      if (j >= count - count / 4) last += std::fabs(c[j]);
    }
    // The rest is small, or nothing but roundings.
    if (last < error / 8 || last < 0x1p-60L * largest * static_cast<Real>(count)) break;
    if (count == 2 * (kMostDegree + 1)) break;
  }
  Real left_out = 0;
  std::size_t degree = c.size();
  while (degree > 0 && left_out + std::fabs(c[degree - 1]) < error)
    left_out += std::fabs(c[--degree]);
  if (degree > 0) --degree;
  if (degree > kMostDegree) {
    refuse(" takes a degree above 4095: choose a larger error or a smaller interval");
  }
  const std::size_t step = parity == Parity::none ? 1 : 2;
  degree = degree_of(parity, degree);
  Approximation best = approximate(f, on, degree);
  for (int more = 0; best.error > error && more < 4 && degree + step <= kMostDegree; ++more) {
    best = approximate(f, on, degree += step);
  }
  if (best.error > error) {
    refuse(" is beyond what can be proven in this machine's numbers: " + text(best.error) +
           " is what degree " + std::to_string(degree) +
           " is known to reach. Choose a larger error");
  }
  while (degree >= step) {
    Approximation next = approximate(f, on, degree - step);
    if (next.error > error) break;
    best = std::move(next);
    degree -= step;
  }
  return best;
}

}  // namespace jali::approx
