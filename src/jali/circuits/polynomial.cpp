#include "jali/circuits/polynomial.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/ckks/scale.h"

namespace jali::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Evaluator;

// ceil(log2(n)), n >= 1.
int log2_ceil(std::size_t n) { return static_cast<int>(std::bit_width(n - 1)); }

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

int depth(std::size_t degree, Basis) { return log2_ceil(degree + 1); }

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
  if (polynomial_.degree() == 0) return;
  // Choose the number of baby steps with the fewest products. If several have the fewest, choose the fewest powers.
  std::size_t best = 1, fewest = std::numeric_limits<std::size_t>::max();
  for (std::size_t log_baby = 1; (std::size_t{1} << (log_baby - 1)) <= c.size(); ++log_baby) {
    plan(log_baby);
    const std::size_t cost = 16 * (multiplications() + relinearisations()) + powers_.size();
    if (cost < fewest) {
      fewest = cost;
      best = log_baby;
    }
  }
  plan(best);
}

void PolynomialPlan::plan(std::size_t log_baby) {
  powers_.clear();
  nodes_.clear();
  build(polynomial_.coefficients, depth(polynomial_.degree(), polynomial_.basis), log_baby);
}

// Adds X^index and the powers that it is made of to the plan. X^i lies ceil(log2 i) levels below X.
void PolynomialPlan::need(std::size_t index) {
  if (index <= 1) return;
  if (std::ranges::any_of(powers_, [&](const Power& p) { return p.index == index; })) return;
  const std::size_t high = std::has_single_bit(index) ? index / 2 : std::bit_floor(index);
  const std::size_t low = index - high;
  need(high);
  need(low);
  if (polynomial_.basis == Basis::chebyshev) need(high - low);
  powers_.push_back({index, high, low});
}

std::size_t PolynomialPlan::build(Coefficients p, int depth, std::size_t log_baby) {
  Node node;
  node.depth = depth;
  collect(std::move(p), depth, log_baby, node);
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

// Adds the terms and products of p to a node; deg p < 2^depth.
void PolynomialPlan::collect(Coefficients p, int depth, std::size_t log_baby, Node& node) {
  trim(p);
  const std::size_t degree = p.size() - 1;
  // A sum of multiples of powers lies one level below the highest power in it.
  const bool leaf =
      degree < (std::size_t{1} << log_baby) && (degree == 0 || log2_ceil(degree) + 1 <= depth);
  if (leaf) {
    for (std::size_t i = 0; i <= degree; ++i) {
      if (p[i] == 0.0) continue;
      need(i);
      node.terms.emplace_back(i, p[i]);
    }
    return;
  }
  // p = q X^g + r with g = 2^floor(log2 degree).
  const std::size_t g = std::bit_floor(degree);
  Coefficients q(p.begin() + static_cast<std::ptrdiff_t>(g), p.end());
  p.resize(g);
  if (polynomial_.basis == Basis::chebyshev) {
    // a T_{g+i} = 2 a T_g T_i - a T_{g-i}
    for (std::size_t i = 1; i < q.size(); ++i) {
      p[g - i] -= q[i];
      q[i] *= 2.0;
    }
  }
  trim(q);
  need(g);
  if (q.size() == 1) {
    node.terms.emplace_back(g, q[0]);
  } else {
    node.products.push_back({g, build(std::move(q), depth - 1, log_baby)});
  }
  collect(std::move(p), depth, log_baby, node);
}

bool PolynomialPlan::interval_takes_level() const {
  if (polynomial_.basis == Basis::power || polynomial_.degree() == 0) return false;
  const double factor = 2 / (polynomial_.b - polynomial_.a);
  return std::nearbyint(factor) != factor || factor > 1024;
}

int PolynomialPlan::depth_needed() const {
  return depth(polynomial_.degree(), polynomial_.basis) + (interval_takes_level() ? 1 : 0);
}

std::size_t PolynomialPlan::multiplications() const {
  std::size_t total = powers_.size();
  for (const Node& node : nodes_) total += node.products.size();
  return total;
}

double PolynomialPlan::rounding_gain(double u, std::span<const double> powers,
                                     std::span<const double> nodes, int exponent) const {
  const bool chebyshev = polynomial_.basis == Basis::chebyshev;
  std::map<std::size_t, double> value{{0, 1.0}, {1, u}}, slope;
  for (const Power& p : powers_) {
    const double x = value.at(p.high) * value.at(p.low);
    value[p.index] = chebyshev ? 2 * x - value.at(p.high - p.low) : x;
  }
  std::vector<double> node_value(nodes_.size(), 0), node_slope(nodes_.size(), 0);
  for (std::size_t k = 0; k < nodes_.size(); ++k) {  // children come first
    for (const auto& [i, a] : nodes_[k].terms) node_value[k] += a.real() * value.at(i);
    for (const Product& p : nodes_[k].products) {
      node_value[k] += node_value[p.child] * value.at(p.giant);
    }
  }
  const auto weight = [&](double slope) {
    return exponent == 1 ? std::fabs(slope) : slope * slope;
  };
  double gain = 0;
  if (!nodes_.empty()) node_slope.back() = 1;
  for (std::size_t k = nodes_.size(); k-- > 0;) {
    const double s = node_slope[k];
    gain += nodes[k] * weight(s);
    for (const auto& [i, a] : nodes_[k].terms) slope[i] += s * a.real();
    for (const Product& p : nodes_[k].products) {
      node_slope[p.child] += s * value.at(p.giant);
      slope[p.giant] += s * node_value[p.child];
    }
  }
  for (std::size_t k = powers_.size(); k-- > 0;) {
    const Power& p = powers_[k];
    const double s = slope[p.index];
    gain += powers[k] * weight(s);
    const double factor = chebyshev ? 2 * s : s;
    slope[p.high] += factor * value.at(p.low);
    slope[p.low] += factor * value.at(p.high);
    if (chebyshev) slope[p.high - p.low] -= s;
  }
  return gain;
}

std::size_t PolynomialPlan::relinearisations() const {
  std::size_t total = powers_.size();
  for (const Node& node : nodes_) total += !node.products.empty();
  return total;
}

// --- evaluation ---------------------------------------------------------------------------------

namespace {

// The powers and nodes of one evaluation. Level 0 of the plan is the level of u.
class Evaluation {
 public:
  Evaluation(const Evaluator& evaluator, const PolynomialPlan& plan, Ciphertext u)
      : evaluator_(evaluator), plan_(plan), top_(u.level) {
    peak_ = std::max(u.estimate.peak, 1.0);
    if (chebyshev()) {
      u.estimate.lineage = {};  // bound_term() sets the sizes of the terms instead
      bound_term(u, 1);
    }
    powers_.emplace(1, std::move(u));
    for (const auto& power : plan.powers()) make(power);
  }

  // The value of a node at exactly `scale`, node.depth levels below u. peak: a bound on it, if the caller knows one.
  Ciphertext value(std::size_t index, double scale, double peak = params::kUnbounded) const {
    const auto& node = plan_.nodes()[index];
    const int level = top_ - node.depth + 1;
    // The sum is made at this scale, one level above the result, and rescaled once.
    const double sum_scale = scale * ratio(level);
    ckks::Combination sum;
    std::deque<Ciphertext> made;
    for (const auto& product : node.products) {
      const Ciphertext& giant = holding(product.giant, level);
      made.push_back(value(product.child, sum_scale / giant.scale));
      sum.products.push_back({&made.back(), &giant});
    }
    for (const auto& [i, a] : node.terms) {
      if (i == 0) {
        sum.constant = a;
      } else if (a.imag() == 0) {
        sum.multiples.push_back({&powers_.at(i), a.real()});
      } else {
        const Ciphertext x = evaluator_.drop_to(holding(i, level), level);
        made.push_back(evaluator_.multiply_scalar(x, a, sum_scale / x.scale));
        made.back().scale = sum_scale;  // they are equal except for rounding
        sum.multiples.push_back({&made.back(), 1});
      }
    }
    sum.peak = peak;
    Ciphertext out = evaluator_.combine_rescale(sum, level, sum_scale);
    out.scale = scale;
    return out;
  }

 private:
  // Q_level / Q_{level-1}.
  double ratio(int level) const { return evaluator_.params()->ratio(level); }

  // Whether level `high` has all limbs of level `low`.
  bool nested(int high, int low) const {
    const auto& from = evaluator_.params()->level(high).primes;
    const auto& to = evaluator_.params()->level(low).primes;
    return std::includes(from.begin(), from.end(), to.begin(), to.end());
  }

  // X^i with all limbs of `level`; it may lie above. With the word w32, `level` may have primes that X^i's own level lacks.
  // X^i is then divided to the highest lower level that has all limbs of `level`. The result is kept for later calls.
  const Ciphertext& holding(std::size_t i, int level) const {
    const Ciphertext& own = powers_.at(i);
    if (nested(own.level, level)) return own;
    int start = own.level - 1;
    while (!nested(start, level)) --start;
    auto& divided = divided_[{i, start}];
    if (!divided) divided = evaluator_.adjust(own, start, own.scale);
    return *divided;
  }

  void make(const PolynomialPlan::Power& p) {
    const int level = std::min(powers_.at(p.high).level, powers_.at(p.low).level);
    require<InternalError>(level >= 1, "a power below level 0");
    const Ciphertext &high = holding(p.high, level), &low = holding(p.low, level);
    ckks::Combination sum;
    sum.products.push_back({&high, &low, chebyshev() ? 2.0 : 1.0});
    if (chebyshev() && p.high == p.low) {
      sum.constant = -1;
    } else if (chebyshev()) {
      sum.multiples.push_back({&powers_.at(p.high - p.low), -1});
    }
    if (chebyshev()) sum.peak = largest_power(p.index);
    Ciphertext made = evaluator_.combine_rescale(sum, level, high.scale * low.scale);
    if (chebyshev()) bound_term(made, p.index);
    powers_.emplace(p.index, std::move(made));
  }

  // Beyond its interval, T_i(u) = cosh(i acosh(u)), which grows with u, and u <= peak_.
  double largest_power(std::size_t i) const {
    const double reach = static_cast<double>(i) * std::acosh(peak_);
    return reach < 600 ? std::cosh(reach) : params::kUnbounded;
  }

  // Sets the sizes of T_i. The evaluator would multiply the root mean squares of its factors, as if they were independent. On
  // the interval |T_i| <= 1. Powers keep what the evaluator says of them, which knows that they are powers of the same numbers.
  void bound_term(Ciphertext& x, std::size_t i) const {
    const double most = std::min(x.estimate.claim().message, 1.0);
    x.estimate.message = std::min(x.estimate.message * x.estimate.message_spread, 1.0);
    x.estimate.message_spread = 1;
    x.estimate.message_shared =
        x.estimate.message > 0 ? std::max(most / x.estimate.message, 1.0) : 1;
    x.estimate.peak = largest_power(i);
  }

  bool chebyshev() const { return plan_.polynomial().basis == Basis::chebyshev; }

  const Evaluator& evaluator_;
  const PolynomialPlan& plan_;
  int top_;
  double peak_ = 1;  // of u, at least 1
  std::map<std::size_t, Ciphertext> powers_;
  mutable std::map<std::pair<std::size_t, int>, std::optional<Ciphertext>> divided_;
};

/// A bound on |p(u)| for |u| <= peak: the sum of the coefficients' moduli, each times u^i or T_i(u) at u = max(peak, 1).
double largest_value(const Polynomial& p, double peak) {
  double sum = 0;
  const double reach = std::acosh(std::max(peak, 1.0));
  for (std::size_t i = 0; i < p.coefficients.size(); ++i) {
    const auto k = static_cast<double>(i);
    sum += std::abs(p.coefficients[i]) *
           (p.basis == Basis::power ? std::pow(peak, k) : std::cosh(std::min(k * reach, 600.0)));
  }
  return sum < params::kUnbounded ? sum : params::kUnbounded;
}

}  // namespace

Ciphertext evaluate(const Evaluator& evaluator, const Ciphertext& x, const PolynomialPlan& plan,
                    double scale) {
  return evaluate(evaluator, evaluator.copy(x), plan, scale);
}

Ciphertext evaluate(const Evaluator& evaluator, Ciphertext&& x, const PolynomialPlan& plan,
                    double scale) {
  const Polynomial& p = plan.polynomial();
  const int needed = plan.depth_needed();
  require<InvalidArgument>(x.parts.size() == 2, "a polynomial takes two parts: relinearise first");
  require<DepthExhausted>(x.level >= needed, [&] {
    const int depth = evaluator.params()->depth();
    return "a polynomial of degree " + std::to_string(p.degree()) + " takes " +
           std::to_string(needed) + " levels, and the ciphertext has " + std::to_string(x.level) +
           ": Params.create(depth=" + std::to_string(depth + needed - x.level) +
           ") would be enough";
  });
  const rlwe::Level& last = evaluator.params()->level(x.level - needed);
  require<InvalidArgument>(scale == 0 || ckks::is_plausible_scale(scale, last), [&] {
    return "a polynomial's scale is 0 (that of its level) or between 2^-64 and 2^" +
           std::to_string(static_cast<int>(last.log_q) + 64) + ", not " + std::to_string(scale);
  });
  const double target = scale == 0 ? evaluator.params()->scale(x.level - needed) : scale;
  if (p.degree() == 0) {
    Ciphertext zero = evaluator.multiply_integer(x, 0);
    zero.scale = target;
    return evaluator.add_scalar(zero, p.coefficients[0]);
  }
  Ciphertext u;
  // Numbers that are no larger than the interval's ends are taken to lie in it: of an interval that is not symmetric
  // that is the caller's word.
  const bool inside = x.estimate.peak <= std::max(std::fabs(p.a), std::fabs(p.b));
  constexpr double kRoundings = 1 + 0x1p-30;
  const bool proven = !inside || x.estimate.peak <= kRoundings * std::min(-p.a, p.b);
  if (p.basis == Basis::chebyshev) {
    const double factor = 2 / (p.b - p.a), shift = -(p.a + p.b) / (p.b - p.a);
    if (plan.interval_takes_level()) {
      const auto& params = *evaluator.params();
      const double canonical = params.scale(x.level);
      u = evaluator.rescale(
          evaluator.multiply_scalar(x, factor, canonical * (canonical / x.scale)));
    } else if (factor != 1) {
      u = evaluator.multiply_integer(x, static_cast<std::int64_t>(factor));
    } else {
      u = std::move(x);
    }
    if (shift != 0) u = evaluator.add_scalar(u, shift);
    if (inside) u.estimate.peak = 1;
  } else {
    u = std::move(x);
  }
  // Powers of numbers of unknown lineage are powers of the same numbers, too.
  const bool known = u.estimate.lineage.root != 0;
  const std::uint32_t degree = params::degree_of(u.estimate.lineage);
  if (!known) u.estimate.lineage = params::lineage_of_itself(u.estimate.lineage);
  const double largest = std::min(largest_value(p, u.estimate.peak),
                                  p.bounded && inside ? p.largest : params::kUnbounded);
  Ciphertext out =
      Evaluation(evaluator, plan, std::move(u)).value(plan.nodes().size() - 1, target, largest);
  out.estimate.peak = std::min(out.estimate.peak, largest);
  if ((p.basis == Basis::chebyshev || p.bounded) && !proven) out.estimate.derived = false;
  if (!known || out.estimate.lineage.root == 0) {
    const std::size_t times = std::max<std::size_t>(p.degree(), 1);
    out.estimate.lineage = params::lineage_of_unknown(degree * times);
  }
  return out;
}

Ciphertext evaluate(const Evaluator& evaluator, const Ciphertext& x, const Polynomial& polynomial,
                    double scale) {
  return evaluate(evaluator, x, PolynomialPlan(polynomial), scale);
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
  // Modified Gram-Schmidt on the columns w(x) T_j(x), followed by w(x) f(x). It leaves a triangular system, which is solved
  // below.
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
