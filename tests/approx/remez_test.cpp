#include "jali/approx/remez.h"

#include <vector>

#include "jali/base/error.h"
#include "support.h"

namespace jali::approx::testing {
namespace {

// Chebyshev's theorem: the best polynomial is the one whose error takes its largest value count + 1
// times with alternating signs. That says without Remez that no other is better.
std::size_t alternations(const std::vector<Interval>& on, const std::function<Real(Real)>& error,
                         Real near) {
  std::size_t found = 0;
  int last = 0;
  for (const Interval& part : on) {
    for (int i = 0; i <= 8'000; ++i) {
      const Real x = part.low + (static_cast<Real>(part.high) - part.low) * i / 8'000;
      const Real e = error(x);
      if (std::fabs(e) < near) continue;
      const int now = e > 0 ? 1 : -1;
      found += now != last;
      last = now;
    }
  }
  return found;
}

void expect_best(const Problem& problem, std::size_t unknowns) {
  const Series p = best_polynomial(problem);
  const auto error = [&](Real x) {
    return (problem.weight ? problem.weight(x) : 1) * (p(x) - problem.f(x));
  };
  Real worst = 0;
  for (const Interval& on : problem.on) worst = std::max(worst, largest_seen(on, error, 8'000));
  EXPECT_GE(alternations(problem.on, error, worst * Real{0.99}), unknowns + 1)
      << "degree " << problem.degree << ", error " << static_cast<double>(worst);
}

TEST(Remez, ErrorsAlternate) {
  const auto f = [](Real x) { return std::exp(x) + std::sin(3 * x); };
  for (const std::size_t degree : {0u, 1u, 2u, 5u, 9u, 14u}) {
    for (const Interval on : {Interval{-1, 1}, Interval{0.5, 3}, Interval{-2, 0.25}}) {
      expect_best({f, nullptr, {on}, degree}, degree + 1);
      expect_best({f, [](Real x) { return 2 + std::cos(5 * x); }, {on}, degree}, degree + 1);
    }
  }
}

TEST(Remez, OnSeveralIntervals) {
  // A step: 0 on the left and 1 on the right, nothing between.
  const auto f = [](Real x) { return x < 0 ? Real{0} : Real{1}; };
  for (const std::size_t degree : {1u, 4u, 7u, 12u}) {
    expect_best({f, nullptr, {{-1, -0.2}, {0.1, 2}}, degree}, degree + 1);
    expect_best(
        {[](Real x) { return std::fabs(x); }, nullptr, {{-3, -2}, {-0.5, -0.1}, {0.2, 1}}, degree},
        degree + 1);
  }
}

TEST(Remez, EvenAndOdd) {
  const auto one = [](Real) { return Real{1}; };
  for (const std::size_t degree : {1u, 3u, 7u, 15u}) {
    for (const double low : {0.5, 0.1, 0.01}) {
      const Problem odd{one, nullptr, {{low, 1}}, degree, Parity::odd};
      expect_best(odd, (degree + 1) / 2);
      for (std::size_t j = 0; j < degree; j += 2)
        EXPECT_EQ(best_polynomial(odd).coefficients[j], 0);
    }
    expect_best({[](Real x) { return std::cos(x); }, nullptr, {{0, 3}}, degree, Parity::even},
                degree / 2 + 1);
    expect_best({[](Real x) { return std::sin(x); }, nullptr, {{0, 3}}, degree, Parity::odd},
                (degree + 1) / 2);
  }
  // The best odd cubic for 1 on [a, 1] has a closed form for a = 1/2 with points a, x, 1: solved by
  // hand, p = c x (3 - x^2 s) with p(a) = p(1) = 1 - e and the largest value 1 + e between.
  const double a = 0.5;
  const Series p = best_polynomial({one, nullptr, {{a, 1}}, 3, Parity::odd});
  const double s = 3 / (1 + a + a * a), top = 2 / std::sqrt(s), end = 3 - s;
  const double e = (top - end) / (top + end);
  EXPECT_NEAR(static_cast<double>(std::fabs(p(1) - 1)), e, 1e-12);
  EXPECT_NEAR(static_cast<double>(std::fabs(p(a) - 1)), e, 1e-12);
}

// x^(n+1) less its best polynomial of degree n is 2^-n T_{n+1}.
TEST(Remez, OfAPowerIsChebyshevs) {
  for (const std::size_t n : {0u, 1u, 4u, 9u, 20u}) {
    const Series p = best_polynomial(
        {[&](Real x) { return std::pow(x, static_cast<Real>(n + 1)); }, nullptr, {{-1, 1}}, n});
    const Real worst =
        largest_seen({-1, 1}, [&](Real x) { return p(x) - std::pow(x, static_cast<Real>(n + 1)); });
    EXPECT_NEAR(static_cast<double>(worst / std::exp2(-static_cast<Real>(n))), 1, 1e-6) << n;
  }
}

// What it finds of polynomials are these, though no error alternates.
TEST(Remez, EndsWhereNothingIsLeftToImprove) {
  const auto f = [](Real x) { return 1 + x * (2 - x); };
  for (const std::size_t degree : {2u, 3u, 30u}) {
    const Series p = best_polynomial({f, nullptr, {{-1, 2}}, degree});
    EXPECT_LT(largest_seen({-1, 2}, [&](Real x) { return p(x) - f(x); }), 1e-14L);
  }
  const Series flat = best_polynomial({[](Real) { return Real{0}; }, nullptr, {{1, 2}}, 4});
  EXPECT_EQ(flat.degree(), 0u);
  EXPECT_EQ(flat(1.5), 0);
}

TEST(Remez, RefusesWhatIsNoProblem) {
  const auto one = [](Real) { return Real{1}; };
  EXPECT_THROW(best_polynomial({one, nullptr, {}, 3}), InvalidArgument);
  EXPECT_THROW(best_polynomial({one, nullptr, {{0, 1}, {0.5, 2}}, 3}), InvalidArgument);
  EXPECT_THROW(best_polynomial({one, nullptr, {{-1, 1}}, 3, Parity::odd}), InvalidArgument);
  EXPECT_THROW(best_polynomial({one, nullptr, {{0, 1}}, 0, Parity::odd}), InvalidArgument);
  EXPECT_THROW(best_polynomial({one, nullptr, {{0, 1}}, 256}), InvalidArgument);
  EXPECT_THROW(best_polynomial({one, [](Real) { return Real{0}; }, {{0, 1}}, 2}), InvalidArgument);
  EXPECT_THROW(best_polynomial({[](Real x) { return 1 / x; }, nullptr, {{0, 1}}, 2}),
               InvalidArgument);
}

}  // namespace
}  // namespace jali::approx::testing
