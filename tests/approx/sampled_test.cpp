#include "jali/approx/sampled.h"

#include "jali/base/error.h"
#include "support.h"

namespace jali::approx::testing {
namespace {

TEST(Sampled, FindsTheTrueDegree) {
  EXPECT_EQ(interpolate([](Real x) { return x * x; }, {-1, 1}, 7).polynomial.degree(), 2u);
  EXPECT_EQ(interpolate([](Real x) { return std::cos(static_cast<double>(x)); }, {-1, 1}, 3)
                .polynomial.degree(),
            2u);
  EXPECT_EQ(interpolate([](Real x) { return std::fabs(x); }, {-4, 4}, 15).polynomial.degree(), 14u);
  EXPECT_EQ(interpolate([](Real) { return Real{3}; }, {-1, 1}, 9).polynomial.degree(), 0u);
  EXPECT_EQ(interpolate([](Real) { return Real{0}; }, {-1, 1}, 9).polynomial.degree(), 0u);
  const auto sigmoid = [](Real x) { return 1 / (1 + std::exp(-static_cast<double>(x))); };
  const Measured m = interpolate(sigmoid, {-8, 8}, 16);
  EXPECT_EQ(m.polynomial.degree(), 15u) << "odd but for its constant";
  for (std::size_t j = 2; j < m.polynomial.coefficients.size(); j += 2)
    EXPECT_EQ(m.polynomial.coefficients[j], 0);
  EXPECT_EQ(interpolate([](Real x) { return std::exp(x); }, {-1, 1}, 6).polynomial.degree(), 6u)
      << "nothing is lost";
}

TEST(Sampled, MeasuresItsError) {
  const auto f = [](Real x) { return std::exp(std::sin(3 * x)); };
  for (const std::size_t degree : {0u, 1u, 4u, 12u, 40u}) {
    for (const bool best : {false, true}) {
      const Measured m = best ? minimax(f, {-1, 2}, degree) : interpolate(f, {-1, 2}, degree);
      const Real seen = largest_seen({-1, 2}, [&](Real x) { return f(x) - m.polynomial(x); });
      EXPECT_NEAR(static_cast<double>(seen), m.error, 1e-4 * m.error + 1e-14) << degree;
    }
    EXPECT_LE(minimax(f, {-1, 2}, degree).error,
              interpolate(f, {-1, 2}, degree).error * 1.0001 + 1e-14);
  }
}

TEST(Sampled, RefusesPoles) {
  JALI_SEEDED(random);
  std::uniform_real_distribution<double> uniform(-0.99, 0.99);
  for (const std::size_t degree : {0u, 1u, 2u, 3u, 7u, 8u, 31u, 200u}) {
    EXPECT_THROW(interpolate([](Real x) { return 1 / x; }, {-1, 1}, degree), InvalidArgument)
        << degree;
    EXPECT_THROW(interpolate([](Real x) { return 1 / x; }, {0, 1}, degree), InvalidArgument)
        << degree;
    EXPECT_THROW(interpolate([](Real x) { return std::log(x); }, {-1, 1}, degree), InvalidArgument);
    EXPECT_THROW(interpolate([](Real x) { return std::log(x); }, {0, 1}, degree), InvalidArgument);
    EXPECT_THROW(interpolate([](Real x) { return std::sqrt(x); }, {-0.1, 1}, degree),
                 InvalidArgument);
    for (int trial = 0; trial < 20; ++trial) {
      const double at = uniform(random);
      for (const int power : {1, 2}) {
        EXPECT_THROW(
            interpolate([&](Real x) { return 1 / std::pow(x - at, power); }, {-1, 1}, degree),
            InvalidArgument)
            << "pole at " << at << ", degree " << degree;
        EXPECT_THROW(minimax([&](Real x) { return 1 / std::pow(x - at, power); }, {-1, 1},
                             std::min<std::size_t>(degree, 31)),
                     InvalidArgument)
            << "pole at " << at << ", degree " << degree;
      }
    }
  }
  // What is only steep, or jumps, is taken.
  EXPECT_GT(interpolate([](Real x) { return std::tanh(200 * x); }, {-1, 1}, 15).error, 0.1);
  EXPECT_GT(interpolate([](Real x) { return x < 0 ? Real{-1} : Real{1}; }, {-1, 1}, 15).error, 0.1);
  EXPECT_GT(interpolate([](Real x) { return std::log(x); }, {1e-4, 1}, 15).error, 0.01);
}

}  // namespace
}  // namespace jali::approx::testing
