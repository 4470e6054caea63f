// Named functions of encrypted real numbers, each with the interval it is made for, the levels it
// takes and a bound on its error that is proven.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jali/approx/smooth.h"
#include "jali/circuits/ckks/polynomial.h"

namespace jali::circuits {

/// The bounded polynomial of a series.
Polynomial bounded_polynomial(const approx::Series& series);

/// What is known of a function before anything is encrypted.
struct FunctionFacts {
  std::string name;
  approx::Interval on;  // where its numbers lie
  /// For |x| < gap the error does not hold. 0 for all but sign and step.
  double gap = 0;
  double max_error = 0;  // a proven bound on |y - f(x)| in exact arithmetic
  double largest = 0;  // a bound on |y|
  int depth = 0;  // levels, exactly
  int multiplications = 0;  // of ciphertexts
};

class Function {
 public:
  virtual ~Function() = default;
  const FunctionFacts& facts() const { return facts_; }
  /// Its polynomial, or nullptr if it is not a single one.
  virtual const PolynomialPlan* polynomial() const { return nullptr; }
  /// What apply computes, in the clear.
  virtual double operator()(double x) const = 0;

  /// The function of every slot, facts().depth levels lower. x: two parts, no rescale owed. within:
  /// see domain.h. Throws InvalidArgument for numbers that are not known to lie in facts().on,
  /// DepthExhausted, KeyMissing.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                         const std::optional<approx::Interval>& within = std::nullopt) const;

 protected:
  explicit Function(FunctionFacts facts) : facts_(std::move(facts)) {}
  virtual ckks::Ciphertext run(const ckks::Evaluator& evaluator,
                               const ckks::Ciphertext& x) const = 0;

  FunctionFacts facts_;
};

using FunctionPtr = std::shared_ptr<const Function>;

/// How good a polynomial has to be. Exactly one of them is given.
struct Wanted {
  std::optional<double> error;  // the least degree that is proven to reach it
  std::optional<std::size_t> degree;  // the best of at most this degree
  std::optional<int> depth;  // the best that takes at most this many levels
};

/// A function that is analytic around the interval, by the best polynomial.
FunctionPtr smooth(const approx::Smooth& f, const approx::Interval& on, const Wanted& wanted);

/// -1 or 1, off by at most `error` for gap <= |x| <= bound. For |x| < gap it has the sign of x, and
/// |y| <= 1 + error.
FunctionPtr sign(double bound, double gap, double error);
/// 0 for x < 0 and 1 for x > 0, off by at most `error` for gap <= |x| <= bound; in between for
/// smaller ones.
FunctionPtr step(double bound, double gap, double error);
/// |x| and max(x, 0), off by at most `error` for all |x| <= bound, 0 included: x times the sign or
/// step.
FunctionPtr absolute(double bound, double error);
FunctionPtr relu(double bound, double error);

/// 1/x on an interval above 0: the best polynomial p_0 by its relative error, and then `steps`
/// times (R. Goldschmidt, 1964)
///   e_0 = 1 - x p_0,  y_0 = p_0;  y_{k+1} = y_k + y_k e_k,  e_{k+1} = e_k^2,
/// which squares the relative error by two products and a level each. steps: none for what takes
/// the fewest levels, and of these the fewest products; a polynomial alone takes a level less than
/// with steps, and more products.
FunctionPtr inverse(const approx::Interval& on, double error,
                    std::optional<int> steps = std::nullopt);
/// 1/sqrt(x) on an interval above 0: the best polynomial by its relative error and `steps` of
/// Newton's
///   y_{k+1} = y_k (3 - x y_k^2) / 2,
/// of two levels and three products each, after which the relative error d is 3/2 d^2 + d^3/2 at
/// most.
FunctionPtr inverse_square_root(const approx::Interval& on, double error,
                                std::optional<int> steps = std::nullopt);
/// sqrt(x) on an interval above 0: the best polynomial, or x / sqrt(x) if steps are asked for.
FunctionPtr square_root(const approx::Interval& on, double error,
                        std::optional<int> steps = std::nullopt);

/// Throws DepthExhausted if x has fewer levels than `name` needs, with the depth that would be
/// enough.
void require_depth(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x, int needed,
                   const std::string& name);

}  // namespace jali::circuits
