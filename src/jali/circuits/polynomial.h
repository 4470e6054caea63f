// Evaluation of polynomials at the fewest levels: Paterson and Stockmeyer with baby steps and giant
// steps, scales exact at every sum (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021, section 3).
#pragma once

#include <complex>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "jali/ckks/evaluator.h"

namespace jali::circuits {

enum class Basis {
  power,  // sum a_i x^i
  chebyshev  // sum a_i T_i(u), u = (2 x - a - b) / (b - a), for x in [a, b]
};

struct Polynomial {
  std::vector<std::complex<double>> coefficients;  // constant first
  Basis basis = Basis::power;
  double a = -1, b = 1;  // interval, of the Chebyshev basis and of what follows
  /// Whether inputs have to lie in [a, b], because the polynomial stands for a function there and for nothing elsewhere.
  /// evaluate takes the caller's word for it; apply (arrays.h) asks for a bound (domain.h).
  bool bounded = false;
  /// Of a bounded polynomial: no |p| is larger in [a, b].
  double largest = params::kUnbounded;
  /// |p - f| is not above it anywhere in [a, b], which is proven; or was not seen above it.
  std::optional<double> max_error{}, measured_error{};

  /// Degree without trailing zeros; 0 for a constant.
  std::size_t degree() const;
  std::complex<double> operator()(std::complex<double> x) const;
};

/// Levels that a polynomial of this degree takes on [-1, 1]: ceil(log2(degree + 1)), the optimum in
/// either basis.
int depth(std::size_t degree, Basis basis);

/// How a polynomial is computed: powers X^i (or T_i) by products of lower ones, and a tree of nodes
///   node = constant + sum a_i X^i + sum_j child_j X^{giant_j}
/// whose children take one level less. A node is one sum before one relinearisation and one rescale.
class PolynomialPlan {
 public:
  struct Power {  // X^index = X^high X^low; T_index = 2 T_high T_low - T_{high - low}
    std::size_t index = 0, high = 0, low = 0;
  };
  struct Node;
  struct Product {
    std::size_t giant = 0;
    std::size_t child = 0;  // index in nodes()
  };
  struct Node {
    int depth = 0;  // levels below the input at which its value lies
    std::vector<std::pair<std::size_t, std::complex<double>>> terms;  // power, 0 for the constant
    std::vector<Product> products;
  };

  /// Throws InvalidArgument for no coefficients, some that are not finite, or an empty interval.
  explicit PolynomialPlan(const Polynomial& polynomial);

  const Polynomial& polynomial() const { return polynomial_; }
  /// Levels in all. The interval costs one level more unless its factor 2 / (b - a) is an integer
  /// below 2^10: then it is free.
  int depth_needed() const;
  bool interval_takes_level() const;
  const std::vector<Power>& powers() const { return powers_; }  // in an order that can be computed
  const std::vector<Node>& nodes() const { return nodes_; }  // the root is the last
  std::size_t multiplications() const;  // ciphertext by ciphertext
  /// What errors of the powers and the nodes, in this order, become in the result at u: the sum of
  /// |derivative|^exponent times them. With exponent 2, variances of independent errors give the variance of the
  /// result. With exponent 1, bounds of errors give a bound. u: on [-1, 1] for Chebyshev.
  double rounding_gain(double u, std::span<const double> powers, std::span<const double> nodes,
                       int exponent = 2) const;
  std::size_t relinearisations() const;

 private:
  using Coefficients = std::vector<std::complex<double>>;
  std::size_t build(Coefficients p, int depth, std::size_t log_baby);
  void collect(Coefficients p, int depth, std::size_t log_baby, Node& node);
  void need(std::size_t index);
  void plan(std::size_t log_baby);

  Polynomial polynomial_;
  std::vector<Power> powers_;
  std::vector<Node> nodes_;
};

/// p(x) on every slot; x of two parts at any level and scale. The result lies plan.depth_needed()
/// levels lower, at exactly that level's canonical scale, or at `scale` if that is not 0.
/// The estimate is that of inputs at the ends of the interval, where errors grow most. (For powers: of 1 and -1, or
/// of the declared root mean square.) For inputs spread evenly it is pessimistic by up to a bit and a half a level.
/// A constant polynomial takes no level and does not hide its value (it depends on no input).
/// Throws DepthExhausted with the depth that would be enough, KeyMissing without a relinearisation key,
/// InvalidArgument for a scale that no ciphertext of that level may have (ckks/scale.h).
ckks::Ciphertext evaluate(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                          const PolynomialPlan& plan, double scale = 0);
/// The same, if x is not needed any more.
ckks::Ciphertext evaluate(const ckks::Evaluator& evaluator, ckks::Ciphertext&& x,
                          const PolynomialPlan& plan, double scale = 0);
ckks::Ciphertext evaluate(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                          const Polynomial& polynomial, double scale = 0);

/// The polynomial of this degree that meets f at the degree + 1 Chebyshev nodes of [a, b]: within a
/// factor 2 + (2/pi) log(degree + 1) of the best there is.
Polynomial chebyshev_interpolate(const std::function<double(double)>& f, double a, double b,
                                 std::size_t degree);

/// The polynomial of this degree with the least sum of squares of weight(x) (p(x) - f(x)) over twice as many
/// Chebyshev nodes. It is closer to f than the interpolant if the weight is large, and less close elsewhere.
Polynomial chebyshev_fit(const std::function<double(double)>& f,
                         const std::function<double(double)>& weight, double a, double b,
                         std::size_t degree);

}  // namespace jali::circuits
