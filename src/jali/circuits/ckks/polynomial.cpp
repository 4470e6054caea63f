#include "jali/circuits/ckks/polynomial.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

void trim(std::vector<std::complex<double>>& p) {
  while (p.size() > 1 && p.back() == 0.0) p.pop_back();
}

}  // namespace

std::size_t Polynomial::degree() const {
  std::size_t d = coefficients.size();
  while (d > 1 && coefficients[d - 1] == 0.0) --d;
  return d == 0 ? 0 : d - 1;
}

std::complex<double> Polynomial::operator()(std::complex<double> x) const {
  if (basis == Basis::power) {
    std::complex<double> y = 0;
    for (std::size_t i = coefficients.size(); i-- > 0;) y = y * x + coefficients[i];
    return y;
  }
  // Clenshaw's recurrence.
  const std::complex<double> u = (2.0 * x - a - b) / (b - a);
  std::complex<double> y1 = 0, y2 = 0;
  for (std::size_t i = coefficients.size(); i-- > 1;)
    y2 = std::exchange(y1, 2.0 * u * y1 - y2 + coefficients[i]);
  return u * y1 - y2 + (coefficients.empty() ? 0.0 : coefficients[0]);
}

int depth(std::size_t degree, Basis) { return depth_of_degree(degree); }

// --- planning -----------------------------------------------------------------------------------

PolynomialPlan::PolynomialPlan(const Polynomial& polynomial) : polynomial_(polynomial) {
  auto& c = polynomial_.coefficients;
  require<InvalidArgument>(!c.empty(), "a polynomial needs at least one coefficient");
  require<InvalidArgument>(
      std::ranges::all_of(
          c, [](const auto& v) { return std::isfinite(v.real()) && std::isfinite(v.imag()); }),
      "a polynomial holds a coefficient that is not finite");
  require<InvalidArgument>(
      polynomial_.basis == Basis::power ||
          (std::isfinite(polynomial_.b - polynomial_.a) && polynomial_.a < polynomial_.b),
      "the interval [a, b] of a Chebyshev polynomial needs a < b");
  require<InvalidArgument>(
      !polynomial_.bounded || (std::isfinite(polynomial_.a) && std::isfinite(polynomial_.b) &&
                               polynomial_.a < polynomial_.b),
      "the interval [a, b] of a polynomial needs a < b");
  require<InvalidArgument>(!polynomial_.bounded || polynomial_.largest >= 0,
                           "the bound on a polynomial's modulus must not be negative");
  trim(c);
  tree_ = Tree(c, polynomial_.basis);
}

bool PolynomialPlan::interval_takes_level() const {
  if (polynomial_.basis == Basis::power || polynomial_.degree() == 0) return false;
  const double factor = 2 / (polynomial_.b - polynomial_.a);
  return std::nearbyint(factor) != factor || factor > 1024;
}

int PolynomialPlan::depth_needed() const {
  return depth(polynomial_.degree(), polynomial_.basis) + (interval_takes_level() ? 1 : 0);
}

double PolynomialPlan::rounding_gain(double u, std::span<const double> powers,
                                     std::span<const double> nodes, int exponent) const {
  const bool chebyshev = polynomial_.basis == Basis::chebyshev;
  std::map<std::size_t, double> value{{0, 1.0}, {1, u}}, slope;
  for (const Power& p : tree_.powers()) {
    const double x = value.at(p.high) * value.at(p.low);
    value[p.index] = chebyshev ? 2 * x - value.at(p.high - p.low) : x;
  }
  std::vector<double> node_value(tree_.nodes().size(), 0), node_slope(tree_.nodes().size(), 0);
  for (std::size_t k = 0; k < tree_.nodes().size(); ++k) {  // children come first
    for (const auto& [i, a] : tree_.nodes()[k].terms) node_value[k] += a.real() * value.at(i);
    for (const Product& p : tree_.nodes()[k].products) {
      node_value[k] += node_value[p.child] * value.at(p.giant);
    }
  }
  const auto weight = [&](double slope) {
    return exponent == 1 ? std::fabs(slope) : slope * slope;
  };
  double gain = 0;
  if (!tree_.nodes().empty()) node_slope.back() = 1;
  for (std::size_t k = tree_.nodes().size(); k-- > 0;) {
    const double s = node_slope[k];
    gain += nodes[k] * weight(s);
    for (const auto& [i, a] : tree_.nodes()[k].terms) slope[i] += s * a.real();
    for (const Product& p : tree_.nodes()[k].products) {
      node_slope[p.child] += s * value.at(p.giant);
      slope[p.giant] += s * node_value[p.child];
    }
  }
  for (std::size_t k = tree_.powers().size(); k-- > 0;) {
    const Power& p = tree_.powers()[k];
    const double s = slope[p.index];
    gain += powers[k] * weight(s);
    const double factor = chebyshev ? 2 * s : s;
    slope[p.high] += factor * value.at(p.low);
    slope[p.low] += factor * value.at(p.high);
    if (chebyshev) slope[p.high - p.low] -= s;
  }
  return gain;
}

Polynomial chebyshev_interpolate(const std::function<double(double)>& f, double a, double b,
                                 std::size_t degree) {
  require<InvalidArgument>(std::isfinite(a) && std::isfinite(b) && a < b,
                           "an interval [a, b] needs a < b");
  const std::size_t count = degree + 1;
  std::vector<double> values(count);
  const auto angle = [&](std::size_t k) {
    return std::numbers::pi * (static_cast<double>(k) + 0.5) / static_cast<double>(count);
  };
  for (std::size_t k = 0; k < count; ++k) {
    values[k] = f((a + b) / 2 + (b - a) / 2 * std::cos(angle(k)));
    require<InvalidArgument>(std::isfinite(values[k]), "the function is not finite on [a, b]");
  }
  // a_j = 2 / count sum_k f(x_k) cos(j angle_k), half of it for j = 0.
  Polynomial p;
  p.basis = Basis::chebyshev;
  p.a = a;
  p.b = b;
  p.coefficients.resize(count);
  for (std::size_t j = 0; j < count; ++j) {
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k)
      sum += values[k] * std::cos(static_cast<double>(j) * angle(k));
    p.coefficients[j] = sum * (j == 0 ? 1 : 2) / static_cast<double>(count);
  }
  return p;
}

Polynomial chebyshev_fit(const std::function<double(double)>& f,
                         const std::function<double(double)>& weight, double a, double b,
                         std::size_t degree) {
  require<InvalidArgument>(std::isfinite(a) && std::isfinite(b) && a < b,
                           "an interval [a, b] needs a < b");
  using Column = std::vector<long double>;
  const std::size_t count = degree + 1, nodes = 2 * count;
  const auto dot = [](const Column& x, const Column& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0L);
  };
  // Modified Gram-Schmidt on the columns w(x) T_j(x), followed by w(x) f(x). It leaves a triangular
  // system, which is solved below.
  std::vector<Column> columns(count + 1, Column(nodes));
  for (std::size_t k = 0; k < nodes; ++k) {
    const long double angle = std::numbers::pi_v<long double> *
                              (static_cast<long double>(k) + 0.5L) /
                              static_cast<long double>(nodes);
    const auto x = static_cast<double>((a + b) / 2 + (b - a) / 2 * std::cos(angle));
    const long double w = weight(x);
    for (std::size_t j = 0; j < count; ++j) {
      columns[j][k] = w * std::cos(static_cast<long double>(j) * angle);
    }
    columns[count][k] = w * f(x);
    require<InvalidArgument>(std::isfinite(columns[count][k]) && w > 0,
                             "the function is not finite on [a, b], or its weight not positive");
  }
  std::vector<Column> triangle(count, Column(count + 1));
  for (std::size_t i = 0; i < count; ++i) {
    const long double square = dot(columns[i], columns[i]);
    for (std::size_t j = i + 1; j <= count; ++j) {
      const long double r = triangle[i][j] = dot(columns[i], columns[j]) / square;
      for (std::size_t k = 0; k < nodes; ++k) columns[j][k] -= r * columns[i][k];
    }
  }
  Column solution(count);
  for (std::size_t i = count; i-- > 0;) {
    solution[i] = triangle[i][count];
    for (std::size_t j = i + 1; j < count; ++j) solution[i] -= triangle[i][j] * solution[j];
  }
  Polynomial p;
  p.basis = Basis::chebyshev;
  p.a = a;
  p.b = b;
  p.coefficients.assign(solution.begin(), solution.end());
  return p;
}

}  // namespace jali::circuits
