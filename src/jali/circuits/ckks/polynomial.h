// Evaluation of polynomials with the fewest levels (common/power_tree.h), and with equal scales at
// every sum (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021, section 3).
#pragma once

#include <complex>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "jali/circuits/common/power_tree.h"
#include "jali/schemes/ckks/evaluator.h"

namespace jali::circuits {

struct Polynomial {
  std::vector<std::complex<double>> coefficients;  // constant first
  Basis basis = Basis::power;
  double a = -1, b = 1;  // the interval of the Chebyshev basis and of a bounded polynomial
  /// Whether inputs have to lie in [a, b], because the polynomial stands for a function there and
  /// only there. evaluate trusts its caller on that; apply (arrays.h) checks the bound that x
  /// carries (domain.h).
  bool bounded = false;
  /// A bound on |p| in [a, b], if the polynomial is bounded.
  double largest = params::kUnbounded;
  /// The largest |p - f| in [a, b]: a proven bound, and what was seen.
  std::optional<double> max_error{}, measured_error{};

  /// The degree without trailing zeros; 0 for a constant.
  std::size_t degree() const;
  std::complex<double> operator()(std::complex<double> x) const;
};

/// The levels that a polynomial of this degree takes on [-1, 1]: depth_of_degree, in either basis.
int depth(std::size_t degree, Basis basis);

/// How a polynomial is computed: its PowerTree, and what its interval takes.
class PolynomialPlan {
 public:
  using Tree = PowerTree<std::complex<double>>;
  using Power = Tree::Power;
  using Product = Tree::Product;
  using Node = Tree::Node;

  /// Throws InvalidArgument if there are no coefficients, if one is not finite, or if the interval
  /// is empty.
  explicit PolynomialPlan(const Polynomial& polynomial);

  const Polynomial& polynomial() const { return polynomial_; }
  /// The levels that it takes in all. An interval takes one level more unless 2 / (b - a) is an
  /// integer of at most 2^10.
  int depth_needed() const;
  bool interval_takes_level() const;
  const std::vector<Power>& powers() const { return tree_.powers(); }
  const std::vector<Node>& nodes() const { return tree_.nodes(); }
  std::size_t multiplications() const { return tree_.multiplications(); }
  /// The error of the result at u that follows from errors of the powers and nodes, which are given
  /// in their order: the sum of |derivative|^exponent times each error. With exponent 2, variances
  /// of independent errors give the variance of the result. With exponent 1, bounds on errors give
  /// a bound. For the Chebyshev basis, u lies in [-1, 1].
  double rounding_gain(double u, std::span<const double> powers, std::span<const double> nodes,
                       int exponent = 2) const;
  std::size_t relinearisations() const { return tree_.relinearisations(); }

 private:
  Polynomial polynomial_;
  Tree tree_;
};

/// p(x) on every slot. x has two parts, and any level and scale. The result lies
/// plan.depth_needed() levels lower, at exactly that level's canonical scale, or at `scale` if that
/// is not 0. The estimate assumes inputs at the ends of the interval, where errors grow most. (In
/// the power basis it assumes 1 and -1, or the declared root mean square.) For evenly spread inputs
/// it is pessimistic by up to a bit and a half for each level. A constant polynomial takes no
/// level. Its result does not hide its value, which depends on no input. Throws DepthExhausted,
/// which names the depth that would be enough, KeyMissing without a relinearisation key, and
/// InvalidArgument for a scale that no ciphertext of that level may have (ckks/scale.h).
ckks::Ciphertext evaluate(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                          const PolynomialPlan& plan, double scale = 0);
/// evaluate() for an x that is not needed any more.
ckks::Ciphertext evaluate(const ckks::Evaluator& evaluator, ckks::Ciphertext&& x,
                          const PolynomialPlan& plan, double scale = 0);
ckks::Ciphertext evaluate(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                          const Polynomial& polynomial, double scale = 0);

/// The polynomial of this degree that equals f at the degree + 1 Chebyshev nodes of [a, b]. Its
/// largest error is within a factor of 2 + (2/pi) log(degree + 1) of the best possible. Throws
/// InvalidArgument unless a < b and f is finite.
Polynomial chebyshev_interpolate(const std::function<double(double)>& f, double a, double b,
                                 std::size_t degree);

/// The polynomial of this degree with the least sum of squares of weight(x) (p(x) - f(x)) over
/// twice as many Chebyshev nodes. It is closer to f than the interpolant where the weight is large,
/// and less close elsewhere. Throws InvalidArgument unless a < b, f is finite and the weight is
/// positive.
Polynomial chebyshev_fit(const std::function<double(double)>& f,
                         const std::function<double(double)>& weight, double a, double b,
                         std::size_t degree);

}  // namespace jali::circuits
