#include "jali/circuits/ckks/function.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "jali/approx/inverse.h"
#include "jali/base/error.h"
#include "jali/circuits/ckks/domain.h"
#include "jali/circuits/ckks/stages.h"
#include "jali/schemes/ckks/auto_evaluator.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::circuits {

namespace {

using approx::Interval;
using ckks::Ciphertext;

/// An evaluator that keeps levels and scales, for as long as the other one lives.
ckks::AutoEvaluator automatic(const ckks::Evaluator& evaluator) {
  return ckks::AutoEvaluator({std::shared_ptr<const ckks::Evaluator>(), &evaluator});
}

void check_error(double error) {
  require<InvalidArgument>(std::isfinite(error) && error > 0, "an error is a positive number");
}

// --- one polynomial ------------------------------------------------------------------------------

class Single final : public Function {
 public:
  Single(FunctionFacts facts, const Polynomial& p) : Function(std::move(facts)), plan_(p) {
    facts_.depth = plan_.depth_needed();
    facts_.multiplications = static_cast<int>(plan_.multiplications());
  }
  const PolynomialPlan* polynomial() const override { return &plan_; }
  double operator()(double x) const override { return plan_.polynomial()(x).real(); }

 protected:
  Ciphertext run(const ckks::Evaluator& evaluator, const Ciphertext& x) const override {
    return evaluate(evaluator, x, plan_);
  }

 private:
  PolynomialPlan plan_;
};

// --- what is made of a sign ----------------------------------------------------------------------

class OfSign final : public Function {
 public:
  /// times_input: x times the stages.
  OfSign(FunctionFacts facts, const approx::Composite& sign, double factor, double constant,
         bool times_input)
      : Function(std::move(facts)), stages_(sign, factor, constant), times_input_(times_input) {
    facts_.depth = stages_.depth() + (times_input ? 1 : 0);
    facts_.multiplications = stages_.multiplications() + (times_input ? 1 : 0);
  }
  double operator()(double x) const override { return stages_(x) * (times_input_ ? x : 1); }

 protected:
  Ciphertext run(const ckks::Evaluator& evaluator, const Ciphertext& x) const override {
    Ciphertext y = stages_.apply(evaluator, x);
    if (!times_input_) return y;
    const auto server = automatic(evaluator);
    return server.normalise(server.multiply(x, y));
  }

 private:
  Stages stages_;
  bool times_input_;
};

FunctionFacts facts_of(const char* name, double bound, double gap, double error, double largest) {
  return {name, {-bound, bound}, gap, error, largest, 0, 0};
}

void check_bound(double bound) {
  require<InvalidArgument>(std::isfinite(bound) && bound > 0,
                           "the bound is the largest modulus that can occur, a positive number");
}

/// Errors of signs above this say nothing, and a larger one is not asked for.
constexpr double kLargestSignError = 0.5;

// --- inverses ------------------------------------------------------------------------------------

/// A polynomial and steps that make it better.
struct Iteration {
  std::size_t degree = 0;
  int steps = 0;
};

/// The iteration with the fewest levels, then products, whose relative error is at most `error`.
/// start(degree): that of the polynomial; after(e): of a step; levels and products of `steps`
/// steps.
template <class Start, class After, class Levels, class Products>
Iteration chosen(const Interval& on, double error, std::optional<int> steps,
                 std::size_t most_degree, const std::string& name, Start start, After after,
                 Levels levels, Products products) {
  constexpr int kMostSteps = 12;
  require<InvalidArgument>(!steps || (*steps >= 0 && *steps <= kMostSteps),
                           "steps is from 0 to 12");
  std::optional<Iteration> best;
  std::pair<int, int> cost;
  for (int k = steps.value_or(0); k <= steps.value_or(kMostSteps); ++k) {
    if (best && levels(k) + 1 >= cost.first) break;
    const auto reached = [&](std::size_t degree) {
      double e = start(degree);
      for (int i = 0; i < k; ++i) e = after(e);
      return e <= error;
    };
    std::size_t high = 1;
    while (high < most_degree && !reached(high)) high = std::min(2 * high, most_degree);
    if (!reached(high)) continue;
    std::size_t low = 0;  // not known to reach it
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (reached(middle) ? high : low) = middle;
    }
    Polynomial shape;
    shape.basis = Basis::chebyshev;
    shape.a = on.low;
    shape.b = on.high;
    shape.coefficients.assign(high + 1, 1.0);
    const PolynomialPlan plan(shape);
    const std::pair<int, int> now{plan.depth_needed() + levels(k),
                                  static_cast<int>(plan.multiplications()) + products(k)};
    if (!best || now < cost) {
      best = {high, k};
      cost = now;
    }
  }
  require<InvalidArgument>(best.has_value(), [&] {
    return name +
           " cannot be made that exact on this interval: let it begin further from 0, allow a "
           "larger error" +
           (steps ? ", or ask for other steps" : "");
  });
  return *best;
}

class Inverse final : public Function {
 public:
  Inverse(FunctionFacts facts, const approx::Relative& start, int steps)
      : Function(std::move(facts)),
        plan_(bounded_polynomial(start.polynomial)),
        start_error_(start.error),
        steps_(steps) {
    facts_.depth = plan_.depth_needed() + levels(steps);
    facts_.multiplications = static_cast<int>(plan_.multiplications()) + products(steps);
  }
  static int levels(int steps) { return steps == 0 ? 0 : steps + 1; }
  static int products(int steps) { return 2 * steps; }

  const PolynomialPlan* polynomial() const override { return steps_ == 0 ? &plan_ : nullptr; }
  double operator()(double x) const override {
    double y = plan_.polynomial()(x).real(), e = 1 - x * y;
    for (int k = 0; k < steps_; ++k) {
      y += y * e;
      e *= e;
    }
    return y;
  }

 protected:
  Ciphertext run(const ckks::Evaluator& evaluator, const Ciphertext& x) const override {
    Ciphertext y = evaluate(evaluator, x, plan_);
    if (steps_ == 0) return y;
    const auto server = automatic(evaluator);
    Ciphertext e = server.normalise(server.add_scalar(server.negate(server.multiply(x, y)), 1.0));
    double bound = start_error_;
    for (int k = 0; k < steps_; ++k) {
      e.estimate.bound_numbers(bound);
      y = server.normalise(server.add(server.multiply(y, e), y));
      y.estimate.bound_numbers(facts_.largest);
      if (k + 1 < steps_) e = server.normalise(server.square(e));
      bound *= bound;
    }
    return y;
  }

 private:
  PolynomialPlan plan_;
  double start_error_;
  int steps_;
};

double newton(double d) { return (1.5 + d / 2) * d * d * (1 + 0x1p-50); }

class InverseRoot final : public Function {
 public:
  /// root: x times it, which is sqrt(x).
  InverseRoot(FunctionFacts facts, const approx::Relative& start, int steps, bool root)
      : Function(std::move(facts)),
        plan_(bounded_polynomial(start.polynomial)),
        largest_((1 + start.error) / std::sqrt(facts_.on.low)),
        steps_(steps),
        root_(root) {
    facts_.depth = plan_.depth_needed() + levels(steps) + (root ? 1 : 0);
    facts_.multiplications =
        static_cast<int>(plan_.multiplications()) + products(steps) + (root ? 1 : 0);
  }
  static int levels(int steps) { return 2 * steps; }
  static int products(int steps) { return 3 * steps; }

  const PolynomialPlan* polynomial() const override {
    return steps_ == 0 && !root_ ? &plan_ : nullptr;
  }
  double operator()(double x) const override {
    double y = plan_.polynomial()(x).real();
    for (int k = 0; k < steps_; ++k) y = 1.5 * y - (x / 2 * y) * (y * y);
    return root_ ? x * y : y;
  }

 protected:
  Ciphertext run(const ckks::Evaluator& evaluator, const Ciphertext& x) const override {
    const auto server = automatic(evaluator);
    Ciphertext y = evaluate(evaluator, x, plan_);
    if (steps_ > 0) {
      const Ciphertext half = server.normalise(server.multiply_scalar(x, 0.5));
      const double most = largest_ * std::sqrt(facts_.on.low);  // of y sqrt(x)
      for (int k = 0; k < steps_; ++k) {
        const Ciphertext square = server.normalise(server.square(y));
        // x y^2 is at most most^2, so these are at most most sqrt(x) / 2 and most^3 / (2 sqrt(x)).
        const Ciphertext product =
            server.normalise(server.multiply(half, y, most / 2 * std::sqrt(facts_.on.high)));
        const Ciphertext cube =
            server.multiply(product, square, most * most * most / 2 / std::sqrt(facts_.on.low));
        y = server.normalise(server.sub(server.multiply_scalar(y, 1.5), cube));
        y.estimate.bound_numbers(largest_);
      }
    }
    if (!root_) return y;
    return server.normalise(server.multiply(x, y));
  }

 private:
  PolynomialPlan plan_;
  double largest_;
  int steps_;
  bool root_;
};

FunctionPtr root(const Interval& on, double error, std::optional<int> steps, bool inverse) {
  check_error(error);
  const char* name = inverse ? "inverse_sqrt" : "sqrt";
  approx::inverse_error(on, 1);  // the interval lies above 0
  const double largest = inverse ? 1 / std::sqrt(on.low) : std::sqrt(on.high);
  const double relative = std::min(error / largest * (1 - 0x1p-40), 0.5);
  const auto choice = chosen(
      on, relative, steps, approx::kMostDegree, name,
      [&](std::size_t degree) { return approx::inverse_square_root(on, degree).error; }, newton,
      InverseRoot::levels, InverseRoot::products);
  const auto start = approx::inverse_square_root(on, choice.degree);
  double reached = start.error;
  for (int k = 0; k < choice.steps; ++k) reached = newton(reached);
  reached *= largest * (1 + 0x1p-40);
  return std::make_shared<InverseRoot>(FunctionFacts{name, on, 0, reached, largest + reached, 0, 0},
                                       start, choice.steps, !inverse);
}

}  // namespace

Polynomial bounded_polynomial(const approx::Series& series) {
  Polynomial p;
  p.basis = Basis::chebyshev;
  p.a = series.on.low;
  p.b = series.on.high;
  p.bounded = true;
  p.coefficients.assign(series.coefficients.begin(), series.coefficients.end());
  p.largest = static_cast<double>(approx::largest_modulus(series)) * (1 + 0x1p-50);
  return p;
}

void require_depth(const ckks::Evaluator& evaluator, const Ciphertext& x, int needed,
                   const std::string& name) {
  require<DepthExhausted>(x.level >= needed, [&] {
    const auto& params = *evaluator.params();
    return name + " takes " + std::to_string(needed) + " levels, the ciphertext has " +
           std::to_string(x.level) +
           (params.bootstrap()
                ? std::string(": bootstrap it first, or make the parameters with more levels_after")
                : ": Params.create(depth=" + std::to_string(params.depth() + needed - x.level) +
                      ") would be enough");
  });
}

Ciphertext Function::apply(const ckks::Evaluator& evaluator, const Ciphertext& x,
                           const std::optional<Interval>& within) const {
  require<InvalidArgument>(x.parts.size() == 2,
                           [&] { return facts_.name + " takes two parts: relinearise first"; });
  require_depth(evaluator, x, facts_.depth, facts_.name);
  Ciphertext out = run(evaluator, inside(evaluator, x, facts_.on, within, facts_.name));
  out.estimate.bound_numbers(facts_.largest);
  out.packing = ckks::packing_of_each(x.packing, std::fabs((*this)(filling(facts_.on))));
  return out;
}

FunctionPtr smooth(const approx::Smooth& f, const Interval& on, const Wanted& wanted) {
  require<InvalidArgument>(
      wanted.error.has_value() + wanted.degree.has_value() + wanted.depth.has_value() == 1,
      "say how good it shall be by one of error=, degree= and depth=");
  approx::Approximation a;
  if (wanted.error) {
    a = approx::approximate_within(f, on, *wanted.error);
  } else if (wanted.degree) {
    a = approx::approximate(f, on, *wanted.degree);
  } else {
    on.check();
    Polynomial line;
    line.basis = Basis::chebyshev;
    line.a = on.low;
    line.b = on.high;
    line.coefficients = {0.0, 1.0};
    const int levels = *wanted.depth - (PolynomialPlan(line).interval_takes_level() ? 1 : 0);
    require<InvalidArgument>(levels >= 1 && levels <= 12, [&] {
      return "depth must be from " + std::to_string(*wanted.depth - levels + 1) + " to " +
             std::to_string(*wanted.depth - levels + 12) + " on this interval";
    });
    a = approx::approximate(f, on, (std::size_t{1} << levels) - 1);
  }
  Polynomial p = bounded_polynomial(a.polynomial);
  p.max_error = a.error;
  FunctionFacts facts{f.name, on, 0, a.error, p.largest, 0, 0};
  return std::make_shared<Single>(std::move(facts), p);
}

FunctionPtr sign(double bound, double gap, double error) {
  check_error(error);
  const auto s = approx::sign(bound, gap, std::min(error, kLargestSignError));
  return std::make_shared<OfSign>(facts_of("sign", bound, gap, s.error, 1 + s.error), s, 1, 0,
                                  false);
}

FunctionPtr step(double bound, double gap, double error) {
  check_error(error);
  const auto s = approx::sign(bound, gap, std::min(2 * error, kLargestSignError));
  return std::make_shared<OfSign>(facts_of("step", bound, gap, s.error / 2, 1 + s.error / 2), s,
                                  0.5, 0.5, false);
}

// | |x| - x s | is at most bound times the sign's error, and |x| itself below the gap, where 0 <= s
// sign(x) <= 1 + e.
FunctionPtr absolute(double bound, double error) {
  check_bound(bound);
  check_error(error);
  const double e = std::min(error / bound, kLargestSignError), gap = std::min(error, bound / 2);
  const auto s = approx::sign(bound, gap, e);
  const double reached = std::max(bound * s.error, gap);
  return std::make_shared<OfSign>(facts_of("abs", bound, 0, reached, bound * (1 + s.error)), s, 1,
                                  0, true);
}

// |max(x, 0) - x (1 + s) / 2| is half of that.
FunctionPtr relu(double bound, double error) {
  check_bound(bound);
  check_error(error);
  const double e = std::min(2 * error / bound, kLargestSignError),
               gap = std::min(2 * error, bound / 2);
  const auto s = approx::sign(bound, gap, e);
  const double reached = std::max(bound * s.error, gap) / 2;
  return std::make_shared<OfSign>(facts_of("relu", bound, 0, reached, bound * (1 + s.error / 2)), s,
                                  0.5, 0.5, true);
}

FunctionPtr inverse(const Interval& on, double error, std::optional<int> steps) {
  check_error(error);
  approx::inverse_error(on, 1);  // the interval lies above 0
  const double relative = std::min(error * on.low * (1 - 0x1p-40), 0.5);
  const auto choice = chosen(
      on, relative, steps, approx::kMostDegree, "inverse",
      [&](std::size_t degree) {
        return approx::inverse_error(on, degree) * (1 + 0x1p-6) + 0x1p-44;
      },
      [](double e) { return e * e; }, Inverse::levels, Inverse::products);
  const auto start = approx::inverse(on, choice.degree);
  const double reached = std::pow(start.error, std::exp2(choice.steps)) / on.low * (1 + 0x1p-40);
  require<InvalidArgument>(
      reached <= error,
      "that error is beyond what can be proven in this machine's numbers: choose a larger one");
  return std::make_shared<Inverse>(
      FunctionFacts{"inverse", on, 0, reached, 1 / on.low + reached, 0, 0}, start, choice.steps);
}

FunctionPtr inverse_square_root(const Interval& on, double error, std::optional<int> steps) {
  return root(on, error, steps, true);
}

FunctionPtr square_root(const Interval& on, double error, std::optional<int> steps) {
  if (steps.value_or(0) > 0) return root(on, error, steps, false);
  return smooth(approx::square_root(), on, {.error = error, .degree = {}, .depth = {}});
}

}  // namespace jali::circuits
