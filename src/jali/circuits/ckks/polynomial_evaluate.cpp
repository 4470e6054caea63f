// Polynomials of ciphertexts. polynomial.cpp has their plans.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/circuits/ckks/polynomial.h"
#include "jali/schemes/ckks/scale.h"

namespace jali::circuits {

using ckks::Ciphertext;
using ckks::Evaluator;

namespace {

// The powers and nodes of one evaluation. Level 0 of the plan is the level of u.
class Evaluation {
 public:
  Evaluation(const Evaluator& evaluator, const PolynomialPlan& plan, Ciphertext u)
      : evaluator_(evaluator), plan_(plan), top_(u.level) {
    peak_ = std::max(u.estimate.peak, 1.0);
    if (chebyshev()) {
      u.estimate.set_unknown();  // chebyshev_term() sets the sizes of the terms instead
      u.estimate.chebyshev_term(largest_power(1));
    }
    powers_.emplace(1, std::move(u));
    for (const auto& power : plan.powers()) make(power);
  }

  // The value of a node at exactly `scale`, node.depth levels below u. peak: a bound on it, if the
  // caller knows one.
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

  // X^i with all limbs of `level`; it may lie above. With the word w32, `level` may have primes
  // that X^i's own level lacks. X^i is then divided to the highest lower level that has all limbs
  // of `level`. The result is kept for later calls.
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
    // Powers keep what the evaluator says of them, which knows that they are of the same numbers.
    if (chebyshev()) made.estimate.chebyshev_term(largest_power(p.index));
    powers_.emplace(p.index, std::move(made));
  }

  // Beyond its interval, T_i(u) = cosh(i acosh(u)), which grows with u, and u <= peak_.
  double largest_power(std::size_t i) const {
    const double reach = static_cast<double>(i) * std::acosh(peak_);
    return reach < 600 ? std::cosh(reach) : params::kUnbounded;
  }

  bool chebyshev() const { return plan_.polynomial().basis == Basis::chebyshev; }

  const Evaluator& evaluator_;
  const PolynomialPlan& plan_;
  int top_;
  double peak_ = 1;  // of u, at least 1
  std::map<std::size_t, Ciphertext> powers_;
  mutable std::map<std::pair<std::size_t, int>, std::optional<Ciphertext>> divided_;
};

/// A bound on |p(u)| for |u| <= peak: the sum of the coefficients' moduli, each times u^i or T_i(u)
/// at u = max(peak, 1).
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
  // Numbers that are no larger than the interval's ends are taken to lie in it: of an interval that
  // is not symmetric that is the caller's word.
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
    if (inside) u.estimate.within_unit();
  } else {
    u = std::move(x);
  }
  // Powers of numbers of unknown lineage are powers of the same numbers, too.
  const bool known = u.estimate.lineage.root != 0;
  const std::uint32_t degree = params::degree_of(u.estimate.lineage);
  if (!known) u.estimate.set_itself();
  const double largest = std::min(largest_value(p, u.estimate.peak),
                                  p.bounded && inside ? p.largest : params::kUnbounded);
  Ciphertext out =
      Evaluation(evaluator, plan, std::move(u)).value(plan.nodes().size() - 1, target, largest);
  out.estimate.bound_peak(largest);
  if ((p.basis == Basis::chebyshev || p.bounded) && !proven) out.estimate.mark_claimed();
  if (!known || out.estimate.lineage.root == 0) {
    const std::size_t times = std::max<std::size_t>(p.degree(), 1);
    out.estimate.set_unknown(degree * times);
  }
  return out;
}

Ciphertext evaluate(const Evaluator& evaluator, const Ciphertext& x, const Polynomial& polynomial,
                    double scale) {
  return evaluate(evaluator, x, PolynomialPlan(polynomial), scale);
}

}  // namespace jali::circuits
