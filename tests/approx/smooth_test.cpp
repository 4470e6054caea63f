#include "jali/approx/smooth.h"

#include <complex>
#include <vector>

#include "jali/base/error.h"
#include "support.h"

namespace jali::approx::testing {
namespace {

std::vector<Smooth> everywhere() { return {sigmoid(), tanh(), gelu(), silu(), exp()}; }

// Independent formulas of the same functions.
TEST(Smooth, FunctionsAreWhatTheyAreCalled) {
  for (const double x : {-7.5, -2.0, -0.3, 0.0, 0.1, 1.0, 4.0}) {
    const double e = std::exp(-x);
    EXPECT_NEAR(static_cast<double>(sigmoid().value(x)), 1 / (1 + e), 1e-15);
    EXPECT_NEAR(static_cast<double>(silu().value(x)), x / (1 + e), 1e-14);
    EXPECT_NEAR(static_cast<double>(tanh().value(x)), (1 - e * e) / (1 + e * e), 1e-13);
    EXPECT_NEAR(static_cast<double>(exp().value(x)), 1 / e, 1e-11);
    EXPECT_NEAR(static_cast<double>(gelu().value(x)), x * (1 + std::erf(x / std::sqrt(2.0))) / 2,
                1e-15);
    if (x <= 0) continue;
    EXPECT_EQ(static_cast<double>(log().value(x)), std::log(x));
    EXPECT_EQ(static_cast<double>(square_root().value(x)), std::sqrt(x));
  }
}

using Complex = std::complex<Real>;

/// erf by its series, which converges everywhere.
Complex error_function(Complex z) {
  Complex term = z, sum = z;
  for (int n = 1; n < 200; ++n) {
    term *= -z * z / static_cast<Real>(n);
    sum += term / static_cast<Real>(2 * n + 1);
  }
  return sum * (2 / std::sqrt(std::acos(Real{-1})));
}

// The bounds in the complex plane, which the proofs rest on, at random places of random boxes.
TEST(Smooth, BoundsHoldInTheComplexPlane) {
  JALI_SEEDED(random);
  std::uniform_real_distribution<double> uniform(0, 1);
  struct Case {
    Smooth f;
    std::function<Complex(Complex)> value;
    double widest;  // |Im z| that is worth a try
    bool positive;
  };
  const std::vector<Case> cases = {
      {sigmoid(), [](Complex z) { return Real{1} / (Real{1} + std::exp(-z)); }, 3.5, false},
      {tanh(), [](Complex z) { return std::tanh(z); }, 1.8, false},
      {silu(), [](Complex z) { return z / (Real{1} + std::exp(-z)); }, 3.5, false},
      {gelu(),
       [](Complex z) { return z / Real{2} * (Real{1} + error_function(z / std::sqrt(Real{2}))); },
       3, false},
      {exp(), [](Complex z) { return std::exp(z); }, 10, false},
      {log(), [](Complex z) { return std::log(z); }, 4, true},
      {square_root(), [](Complex z) { return std::sqrt(z); }, 4, true}};
  for (const Case& c : cases) {
    int bounded = 0;
    Real nearest = 0;
    for (int trial = 0; trial < 20'000; ++trial) {
      const Real low = (c.positive ? 0.01 : -4) + 4 * uniform(random),
                 high = low + 3 * uniform(random);
      const Real im = c.widest * uniform(random);
      const Real bound = c.f.bound(low, high, im);
      if (!std::isfinite(bound)) continue;
      ++bounded;
      const Complex z(low + (high - low) * static_cast<Real>(uniform(random)),
                      im * (2 * static_cast<Real>(uniform(random)) - 1));
      const Real value = std::abs(c.value(z));
      EXPECT_LE(value, bound * (1 + 1e-12L)) << c.f.name << " at " << static_cast<double>(z.real())
                                             << " + " << static_cast<double>(z.imag()) << " i";
      nearest = std::max(nearest, value / bound);
    }
    EXPECT_GT(bounded, 1000) << c.f.name;
    EXPECT_GT(nearest, 0.3) << c.f.name << ": the bound says something";
  }
  EXPECT_FALSE(std::isfinite(log().bound(-0.1, 1, 0.5)));
  EXPECT_FALSE(std::isfinite(square_root().bound(0, 1, 0.5)));
  EXPECT_FALSE(std::isfinite(sigmoid().bound(0, 1, 3.2)));
  EXPECT_FALSE(std::isfinite(tanh().bound(0, 1, 1.6)));
}

/// No error that is seen is above the proven one, and this not far above.
void expect_proven(const Smooth& f, const Approximation& a, const std::string& what) {
  const Real seen =
      largest_seen(a.polynomial.on, [&](Real x) { return f.value(x) - a.polynomial(x); }, 2000);
  EXPECT_LE(seen, a.error) << f.name << " " << what;
  Real scale = std::fabs(f.value(a.polynomial.on.low)) + std::fabs(f.value(a.polynomial.on.high));
  for (const double c : a.polynomial.coefficients) scale += std::fabs(static_cast<Real>(c));
  EXPECT_LE(a.error, Real{1.05} * seen + 0x1p-44L * scale)
      << f.name << " " << what << ": the bound is tight";
}

TEST(Smooth, ProvenErrorsAreAboveWhatIsSeen) {
  for (const Smooth& f : everywhere()) {
    for (const Interval on :
         {Interval{-1, 1}, Interval{-8, 8}, Interval{-3, 5}, Interval{0.1, 0.11},
          Interval{-1e-6, 1e-6}, Interval{2, 2 + 1e-9}, Interval{-25, 25}}) {
      for (const std::size_t degree : {0u, 1u, 2u, 7u, 30u}) {
        expect_proven(f, approximate(f, on, degree),
                      "[" + std::to_string(on.low) + ", " + std::to_string(on.high) + "] degree " +
                          std::to_string(degree));
      }
    }
  }
  for (const Smooth& f : {log(), square_root()}) {
    for (const Interval on :
         {Interval{0.5, 4}, Interval{0.01, 1}, Interval{1e-4, 1}, Interval{1e6, 1e9}}) {
      for (const std::size_t degree : {0u, 1u, 7u, 31u, 127u}) {
        expect_proven(f, approximate(f, on, degree),
                      "[" + std::to_string(on.low) + ", " + std::to_string(on.high) + "] degree " +
                          std::to_string(degree));
      }
    }
  }
}

// The proof does not rest on how the polynomial was made: any polynomial is bounded, and one that
// is spoiled where no node of a coarse grid lies, too.
TEST(Smooth, ProvenErrorsOfAnyPolynomial) {
  JALI_SEEDED(random);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 60; ++trial) {
    const auto functions = everywhere();
    const Smooth f = functions[random() % functions.size()];
    const double low = 10 * uniform(random);
    const Interval on{low, low + std::exp2(6 * uniform(random))};
    Series p = approximate(f, on, random() % 20).polynomial;
    p.coefficients.resize(1 + random() % 80);
    p.coefficients.back() += std::exp2(30 * uniform(random) - 15);
    expect_proven(f, {p, proven_error(f, p)}, "spoiled");
  }
}

TEST(Smooth, LargeIntervalsAndHighDegrees) {
  for (const Smooth& f : {sigmoid(), silu()}) {
    const Interval on{-1000, 1000};
    for (const std::size_t degree : {255u, 300u}) {
      const Approximation a = approximate(f, on, degree);
      const Real seen =
          largest_seen(on, [&](Real x) { return f.value(x) - a.polynomial(x); }, 4000);
      EXPECT_LE(seen, a.error);
      EXPECT_LE(a.error, 1.7L * seen) << f.name << " " << degree;
    }
  }
}

TEST(Smooth, TheErrorThatIsAskedForAtTheLeastDegree) {
  for (const Smooth& f : everywhere()) {
    for (const double error : {0.3, 1e-2, 1e-4, 1e-7, 1e-10}) {
      const Interval on{-6, 6};
      const Approximation a = approximate_within(f, on, error);
      EXPECT_LE(a.error, error);
      expect_proven(f, a, "within");
      const std::size_t d = a.polynomial.degree(), less = f.parity == Parity::none ? 1 : 2;
      if (d > less) {
        EXPECT_GT(approximate(f, on, d - less).error, error) << f.name << " " << d;
      }
    }
  }
  // Where a constant is enough, it is taken.
  for (const Smooth& f : everywhere()) {
    const Approximation a = approximate_within(f, {-0.25, 0.25}, 2);
    EXPECT_EQ(a.polynomial.degree(), 0u) << f.name;
    expect_proven(f, a, "constant");
  }
  // Best means better than the interpolant, and no more than the coefficients that are left out.
  const Approximation best = approximate(exp(), {-1, 1}, 5);
  EXPECT_LT(best.error, 1.06 / (32 * 720)) << "2^-n / (n + 1)!, and a little";
}

TEST(Smooth, PartsThatAreNotThereAreZero) {
  for (const Smooth& f : {sigmoid(), tanh()}) {
    const Series p = approximate(f, {-5, 5}, 12).polynomial;
    EXPECT_EQ(p.degree(), 11u);
    for (std::size_t j = 2; j <= 11; j += 2) EXPECT_EQ(p.coefficients[j], 0) << f.name;
  }
  for (const Smooth& f : {gelu(), silu()}) {
    const Series p = approximate(f, {-5, 5}, 15).polynomial;
    EXPECT_EQ(p.degree(), 14u);
    EXPECT_EQ(p.coefficients[1], 2.5);
    for (std::size_t j = 3; j <= 14; j += 2) EXPECT_EQ(p.coefficients[j], 0) << f.name;
  }
}

TEST(Smooth, RefusesPolesAndWhatCannotBeProven) {
  for (const Smooth& f : {log(), square_root()}) {
    EXPECT_THROW(approximate(f, {0, 1}, 7), InvalidArgument);
    EXPECT_THROW(approximate(f, {-1, 1}, 7), InvalidArgument);
    EXPECT_THROW(approximate_within(f, {-1, -0.5}, 0.1), InvalidArgument);
    EXPECT_THROW(approximate(f, {1e-300, 1}, 7), InvalidArgument);
  }
  EXPECT_THROW(approximate_within(sigmoid(), {-1e7, 1e7}, 1e-3), InvalidArgument);
  EXPECT_THROW(approximate_within(exp(), {-40, 40}, 1e-3), InvalidArgument)
      << "below the precision of its values";
  EXPECT_THROW(approximate_within(exp(), {-1, 1}, 1e-30), InvalidArgument);
  EXPECT_THROW(approximate_within(exp(), {-1, 1}, 0), InvalidArgument);
  EXPECT_THROW(approximate_within(exp(), {-1, 1}, NAN), InvalidArgument);
  EXPECT_THROW(approximate(exp(), {-1, 1}, 4096), InvalidArgument);
  EXPECT_THROW(approximate(exp(), {1, -1}, 4), InvalidArgument);
  EXPECT_THROW(approximate(exp(), {0, 1e300}, 4), InvalidArgument);
}

}  // namespace
}  // namespace jali::approx::testing
