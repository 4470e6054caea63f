#include "jali/approx/series.h"

#include <numbers>

#include "jali/base/error.h"
#include "support.h"

namespace jali::approx::testing {
namespace {

Series random_series(std::mt19937_64& random, std::size_t degree, const Interval& on) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Series p;
  p.on = on;
  for (std::size_t j = 0; j <= degree; ++j) p.coefficients.push_back(uniform(random));
  return p;
}

// T_j(cos t) = cos(j t), on any interval.
TEST(Series, IsASumOfCosines) {
  JALI_SEEDED(random);
  for (const Interval on : {Interval{-1, 1}, Interval{2, 2.5}, Interval{-30, 11}}) {
    const Series p = random_series(random, 40, on);
    for (const double t : {0.0, 0.3, 1.1, 2.7, std::numbers::pi}) {
      Real sum = 0;
      for (std::size_t j = 0; j <= 40; ++j)
        sum += p.coefficients[j] * std::cos(static_cast<Real>(j) * t);
      EXPECT_NEAR(
          static_cast<double>(p(on.middle() + on.half() * std::cos(static_cast<Real>(t))) - sum), 0,
          1e-13);
    }
  }
}

TEST(Series, CosinesAreTheLibrarys) {
  for (const std::size_t count : {1u, 2u, 3u, 8u, 37u}) {
    const Cosines cosines(count);
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t j = 0; j < 3 * count; ++j) {
        const double angle =
            std::numbers::pi * (static_cast<double>(k) + 0.5) / static_cast<double>(count);
        EXPECT_NEAR(static_cast<double>(cosines.chebyshev(j, k)),
                    std::cos(static_cast<double>(j) * angle), 1e-12);
      }
      EXPECT_EQ(cosines.node(k), -cosines.node(count - 1 - k)) << "exactly";
    }
  }
}

TEST(Series, OfAPolynomialIsThatPolynomial) {
  JALI_SEEDED(random);
  for (const std::size_t degree : {0u, 1u, 2u, 7u, 64u}) {
    const Series p = random_series(random, degree, {-2, 5});
    const Series q = series_of([&](Real x) { return p(x); }, p.on, degree);
    ASSERT_EQ(q.coefficients.size(), degree + 1);
    for (std::size_t j = 0; j <= degree; ++j)
      EXPECT_NEAR(q.coefficients[j], p.coefficients[j], 1e-14);
  }
  // Of less than the degree asked for, exactly so.
  EXPECT_EQ(series_of([](Real x) { return x * x; }, {-3, 3}, 9).coefficients.size(), 3u);
  const Series even = series_of([](Real x) { return std::cos(x); }, {-3, 3}, 9, Parity::even);
  for (std::size_t j = 1; j < even.coefficients.size(); j += 2) EXPECT_EQ(even.coefficients[j], 0);
  EXPECT_EQ(even.degree(), 8u);
}

// T_m at a grid of its own size is where the bound of Ehlich and Zeller is sharp; random
// polynomials are below it.
TEST(Series, NoPolynomialIsAboveItsBound) {
  JALI_SEEDED(random);
  for (std::size_t degree : {1u, 2u, 5u, 16u, 33u, 100u}) {
    for (const Interval on : {Interval{-1, 1}, Interval{1e-3, 2e-3}, Interval{-1e6, 3e6}}) {
      Series p = random_series(random, degree, on);
      const Real bound = largest_modulus(p);
      const Real seen = largest_seen(on, p);
      EXPECT_LE(seen, bound);
      EXPECT_GE(seen * Real{1.02}, bound) << "the bound says something; degree " << degree;
      p.coefficients.assign(degree + 1, 0);
      p.coefficients.back() = 1;
      EXPECT_GE(largest_modulus(p), 1);
      EXPECT_LE(largest_modulus(p), Real{1.0001});
      const Interval inner{on.low, (on.low + on.high) / 2};
      EXPECT_LE(largest_seen(inner, [&](Real x) { return p(x) - Real{0.5}; }),
                largest_distance(p, 0.5, inner));
    }
  }
  // The factor itself, at T_m: its nodes and its peaks between them, where N is a multiple of m.
  for (const std::size_t times : {2u, 4u, 16u, 128u}) {
    const Grid grid = grid_for(12, 1, times);
    const Cosines cosines(grid.nodes);
    Real seen = 0;
    for (std::size_t k = 0; k < grid.nodes; ++k)
      seen = std::max(seen, std::fabs(cosines.chebyshev(12, k)));
    EXPECT_NEAR(static_cast<double>(seen * grid.factor), 1, 1e-12) << "sharp";
  }
}

TEST(Series, RoundingsAreCounted) {
  JALI_SEEDED(random);
  const Series p = random_series(random, 60, {-1, 1});
  for (int i = 0; i <= 1000; ++i) {
    const Real u = -1 + i / Real{500};
    // In doubles roundings are as much larger as doubles are coarser.
    double y1 = 0, y2 = 0;
    const auto v = static_cast<double>(u);
    for (std::size_t k = p.coefficients.size(); k-- > 1;)
      y2 = std::exchange(y1, 2 * v * y1 - y2 + p.coefficients[k]);
    const double y = v * y1 - y2 + p.coefficients[0];
    const Real ratio =
        std::numeric_limits<double>::epsilon() / std::numeric_limits<Real>::epsilon();
    EXPECT_LE(std::fabs(y - p(v)), rounding_of(p) * (ratio + 1));
  }
}

TEST(Series, RefusesWhatIsNoInterval) {
  for (const Interval on : {Interval{1, 1}, Interval{2, 1}, Interval{0, HUGE_VAL}, Interval{NAN, 1},
                            Interval{-1.7e308, 1.7e308}}) {
    EXPECT_THROW(on.check(), InvalidArgument);
  }
}

}  // namespace
}  // namespace jali::approx::testing
