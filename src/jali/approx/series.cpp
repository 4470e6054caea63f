#include "jali/approx/series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "jali/base/error.h"

namespace jali::approx {

Real Interval::reach() const {
  return std::max(std::fabs(static_cast<Real>(low)), std::fabs(static_cast<Real>(high)));
}

void Interval::check() const {
  require<InvalidArgument>(
      std::isfinite(low) && std::isfinite(high) && low < high && std::isfinite(high - low),
      "an interval (low, high) needs two finite numbers, low below high");
}

std::size_t Series::degree() const {
  std::size_t d = coefficients.size();
  while (d > 1 && coefficients[d - 1] == 0) --d;
  return d == 0 ? 0 : d - 1;
}

// Clenshaw's recurrence.
Real Series::operator()(Real x) const {
  const Real u = (x - on.middle()) / on.half();
  Real y1 = 0, y2 = 0;
  for (std::size_t i = coefficients.size(); i-- > 1;) {
    y2 = std::exchange(y1, 2 * u * y1 - y2 + coefficients[i]);
  }
  return u * y1 - y2 + (coefficients.empty() ? Real{0} : coefficients[0]);
}

Cosines::Cosines(std::size_t count) : count_(count), table_(4 * count) {
  for (std::size_t i = 0; i <= count; ++i) {
    // By the sine in the upper half, where it is the smaller angle.
    const Real cosine =
        2 * i <= count
            ? std::cos(kPi * static_cast<Real>(i) / static_cast<Real>(2 * count))
            : std::sin(kPi * static_cast<Real>(count - i) / static_cast<Real>(2 * count));
    table_[i] = cosine;
    table_[2 * count - i] = -cosine;
    if (i > 0) table_[4 * count - i] = cosine;
    if (i > 0) table_[2 * count + i] = -cosine;
  }
  table_[count] = table_[3 * count] = 0;
}

std::vector<Real> coefficients_of(std::span<const Real> values, std::size_t degree) {
  const std::size_t count = values.size();
  require<InternalError>(degree < count, "a polynomial needs more values than its degree");
  const Cosines cosines(count);
  // c_j = 2 / count sum_k f(x_k) T_j(x_k), half of it for j = 0.
  std::vector<Real> out(degree + 1);
  for (std::size_t j = 0; j <= degree; ++j) {
    Real sum = 0;
    for (std::size_t k = 0; k < count; ++k) sum += values[k] * cosines.chebyshev(j, k);
    out[j] = sum * (j == 0 ? 1 : 2) / static_cast<Real>(count);
  }
  return out;
}

Series series_of(const Function& polynomial, const Interval& on, std::size_t degree,
                 Parity parity) {
  const Cosines cosines(degree + 1);
  std::vector<Real> values(degree + 1);
  Real largest = 0;
  for (std::size_t k = 0; k <= degree; ++k) {
    values[k] = polynomial(on.middle() + on.half() * cosines.node(k));
    largest = std::max(largest, std::fabs(values[k]));
  }
  Series out;
  out.on = on;
  for (const Real c : coefficients_of(values, degree)) {
    const std::size_t j = out.coefficients.size();
    const bool other =
        (parity == Parity::even && j % 2 == 1) || (parity == Parity::odd && j % 2 == 0);
    const bool noise = std::fabs(c) < 0x1p-56L * largest;
    out.coefficients.push_back(other || noise ? 0 : static_cast<double>(c));
  }
  out.coefficients.resize(out.degree() + 1);
  return out;
}

Grid grid_for(std::size_t degree, std::size_t work, std::size_t times) {
  constexpr double kMostWork = 2e7;
  Grid out;
  if (degree == 0) return out;
  while (times > 2 && static_cast<double>(times * degree) * static_cast<double>(work) > kMostWork)
    times /= 2;
  out.nodes = times * degree;
  out.factor = 1 / std::cos(kPi / static_cast<Real>(2 * times)) * (1 + 8 * kEpsilon);
  return out;
}

// A rounding in step k of Clenshaw's recurrence grows by U_k, which is at most k + 1; what is
// rounded there is at most sum_{j >= k} (j - k + 1) |c_j|. Each step rounds four times, and u
// itself three times, which T_j' <= j^2 enlarges.
Real rounding_of(const Series& p) {
  Real sum = 0, once = 0, twice = 0;
  for (std::size_t k = p.coefficients.size(); k-- > 0;) {
    const Real c = std::fabs(static_cast<Real>(p.coefficients[k]));
    once += c;      // sum_{j >= k} |c_j|
    twice += once;  // sum_{j >= k} (j - k + 1) |c_j|
    const auto step = static_cast<Real>(k);
    sum += (step + 1) * twice + step * step * c * p.on.reach() / p.on.half();
  }
  return 4 * kEpsilon * sum;
}

Real largest_distance(const Series& p, Real target, const Interval& on, std::size_t times) {
  const Grid grid = grid_for(p.degree(), p.coefficients.size(), times);
  const Cosines cosines(grid.nodes);
  Real worst = 0;
  for (std::size_t k = 0; k < grid.nodes; ++k) {
    worst = std::max(worst, std::fabs(p(on.middle() + on.half() * cosines.node(k)) - target));
  }
  return grid.factor * (worst + rounding_of(p) + kEpsilon * std::fabs(target));
}

Real largest_modulus(const Series& p) {
  Real sum = 0;
  for (const double c : p.coefficients) sum += std::fabs(static_cast<Real>(c));
  return std::min(sum * (1 + static_cast<Real>(p.coefficients.size()) * kEpsilon),
                  largest_distance(p, 0, p.on));
}

}  // namespace jali::approx
