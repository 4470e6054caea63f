#include "jali/circuits/ckks/polynomial.h"

#include <limits>
#include <map>
#include <numbers>

#include "../../seeded.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

Polynomial random_polynomial(std::mt19937_64& random, std::size_t degree, Basis basis,
                             int parity = -1, bool complex_values = false) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Polynomial p;
  p.basis = basis;
  const double size = 1 / std::sqrt(static_cast<double>(degree) + 1);
  for (std::size_t i = 0; i <= degree; ++i) {
    const bool zero = parity >= 0 && static_cast<int>(i % 2) != parity;
    const double re = uniform(random) * size, im = complex_values ? uniform(random) * size : 0;
    p.coefficients.push_back(zero ? Complex(0) : Complex(re, im));
  }
  if (p.coefficients.back() == 0.0) p.coefficients.back() = 0.5;
  return p;
}

// --- plans in the clear --------------------------------------------------------------------------

// Runs the plan on plain numbers and checks the levels of all values.
struct Simulator {
  const PolynomialPlan& plan;
  std::map<std::size_t, std::pair<Complex, int>> powers;  // value, levels below u

  Simulator(const PolynomialPlan& p, Complex u) : plan(p) {
    powers[1] = {u, 0};
    const bool chebyshev = p.polynomial().basis == Basis::chebyshev;
    for (const auto& q : p.powers()) {
      const auto [a, depth_a] = powers.at(q.high);
      const auto [b, depth_b] = powers.at(q.low);
      Complex value = a * b;
      if (chebyshev) {
        const std::size_t gap = q.high - q.low;
        value = 2.0 * value - (gap == 0 ? Complex(1) : powers.at(gap).first);
        EXPECT_LE(gap == 0 ? 0 : powers.at(gap).second, std::max(depth_a, depth_b));
      }
      powers[q.index] = {value, std::max(depth_a, depth_b) + 1};
    }
  }

  Complex value(std::size_t index) const {
    const auto& node = plan.nodes()[index];
    Complex sum = 0;
    for (const auto& [i, a] : node.terms) {
      sum += i == 0 ? a : a * powers.at(i).first;
      EXPECT_LE(i == 0 ? 0 : powers.at(i).second + 1, node.depth);
    }
    for (const auto& product : node.products) {
      EXPECT_LT(plan.nodes()[product.child].depth, node.depth);
      EXPECT_LT(powers.at(product.giant).second, node.depth);
      sum += powers.at(product.giant).first * value(product.child);
    }
    return sum;
  }
};

TEST(PolynomialPlan, IsThePolynomialAtOptimalDepth) {
  std::mt19937_64 random(jali::test::test_seed());
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (Basis basis : {Basis::power, Basis::chebyshev}) {
    for (std::size_t degree = 1; degree <= 127; ++degree) {
      for (int parity : {-1, static_cast<int>(degree % 2)}) {
        const Polynomial p = random_polynomial(random, degree, basis, parity, true);
        const PolynomialPlan plan(p);
        const int optimum = static_cast<int>(std::ceil(std::log2(static_cast<double>(degree + 1))));
        EXPECT_EQ(plan.depth_needed(), optimum) << degree;
        EXPECT_EQ(depth(degree, basis), optimum);
        EXPECT_EQ(plan.nodes().back().depth, optimum);
        const Complex x = uniform(random);
        const Simulator simulator(plan, x);
        EXPECT_LT(std::abs(simulator.value(plan.nodes().size() - 1) - p(x)), 1e-10)
            << "degree " << degree;
        if (parity >= 0 && degree > 2) {
          const PolynomialPlan full(random_polynomial(random, degree, basis));
          EXPECT_LE(plan.multiplications(), full.multiplications());
        }
      }
    }
  }
}

TEST(PolynomialPlan, FewProducts) {
  std::mt19937_64 random(jali::test::test_seed());
  for (Basis basis : {Basis::power, Basis::chebyshev}) {
    for (std::size_t degree : {7u, 15u, 31u, 63u, 127u}) {
      const PolynomialPlan plan(random_polynomial(random, degree, basis));
      // Paterson and Stockmeyer need about sqrt(2 d) + log2 d products; the optimal depth costs a
      // few more.
      const double d = static_cast<double>(degree);
      EXPECT_LE(static_cast<double>(plan.multiplications()), std::sqrt(2 * d) + 2 * std::log2(d))
          << degree;
      EXPECT_LE(plan.relinearisations(), plan.multiplications());
    }
    const PolynomialPlan even(random_polynomial(random, 62, basis, 0));
    for (const auto& power : even.powers()) EXPECT_EQ(power.index % 2, 0u);
  }
}

TEST(PolynomialPlan, RefusesWhatIsNoPolynomial) {
  EXPECT_THROW(PolynomialPlan({{}, Basis::power}), InvalidArgument);
  EXPECT_THROW(PolynomialPlan({{1.0, std::nan("")}, Basis::power}), InvalidArgument);
  EXPECT_THROW(PolynomialPlan({{1.0, 2.0}, Basis::chebyshev, 1, 1}), InvalidArgument);
  EXPECT_EQ(PolynomialPlan({{1.0, 2.0, 0.0, 0.0}, Basis::power}).depth_needed(), 1);
  EXPECT_EQ(PolynomialPlan({{1.0}, Basis::power}).depth_needed(), 0);
}

// --- on ciphertexts ------------------------------------------------------------------------------

// The error of p(x) is at most about |p'| times the error of x, plus the error of the evaluation.
// |p'| is at most sum |p_i| i in the power basis and sum |p_i| i^2 in the Chebyshev basis.
double tolerance(const World& world, const ckks::Ciphertext& x, const ckks::Ciphertext& y,
                 const Polynomial& p) {
  double slope = 1;
  for (std::size_t i = 0; i < p.coefficients.size(); ++i) {
    const double d = static_cast<double>(i);
    slope += std::abs(p.coefficients[i]) * (p.basis == Basis::power ? d : d * d);
  }
  return bound(world, y) + slope * 4 * bound(world, x);
}

void check(World& world, const Polynomial& p, int level, double a = -1, double b = 1,
           std::size_t batch = 1) {
  std::uniform_real_distribution<double> uniform(a, b);
  std::vector<Complex> x(batch * world.params->slots());
  for (auto& z : x) z = uniform(world.random);
  const double end = std::max(std::fabs(a), std::fabs(b));
  const double rms = std::sqrt((a * a + a * b + b * b) / 3);
  const auto c =
      world.encrypt(x, level, -1, batch, {std::max(rms, jali::testing::kMagnitude), end});
  const PolynomialPlan plan(p);
  const auto y = evaluate(*world.evaluator, c, plan);
  EXPECT_EQ(y.level, level - plan.depth_needed());
  EXPECT_EQ(y.scale, world.params->scale(y.level));
  EXPECT_EQ(y.parts.size(), 2u);
  std::vector<Complex> expected;
  for (const auto& z : x) expected.push_back(p(z));
  const double limit = tolerance(world, c, y, p);
  // The estimate holds. For inputs spread over the interval it is too large by at most this factor.
  world.expect(y, expected, std::exp2(-1 - 1.5 * plan.depth_needed()), 2.0);
  EXPECT_LT(limit, 0.05);
  if (p.basis == Basis::chebyshev) {
    EXPECT_LT(ckks::worst_case_error(y), 1) << "a bound that says something; degree " << p.degree();
  }
  EXPECT_LE(jali::testing::max_error(world.decrypt(y), expected), limit)
      << "degree " << p.degree() << ", seed " << world.seed;
}

class Polynomials : public ::testing::TestWithParam<Scheme> {};

TEST_P(Polynomials, DegreesOneToSixtyThree) {
  World world(GetParam(), {});
  for (Basis basis : {Basis::power, Basis::chebyshev}) {
    for (std::size_t degree :
         {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 11u, 15u, 16u, 23u, 31u, 32u, 47u, 63u}) {
      const int needed = depth(degree, basis);
      if (needed > world.params->depth()) continue;
      check(world, random_polynomial(world.random, degree, basis), needed);
      if (degree % 4 == 3 || degree % 8 == 0)
        check(world, random_polynomial(world.random, degree, basis, static_cast<int>(degree % 2)),
              world.params->depth());
    }
  }
}

TEST_P(Polynomials, ComplexCoefficientsAndBatch) {
  World world(GetParam(), {});
  for (Basis basis : {Basis::power, Basis::chebyshev}) {
    check(world, random_polynomial(world.random, 6, basis, -1, true), world.params->depth());
    check(world, random_polynomial(world.random, 9, basis), world.params->depth(), -1, 1, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Words, Polynomials,
                         ::testing::ValuesIn(std::vector<Scheme>{
                             {"w64", Word::w64, 50, 6, 10},
                             {"w52", Word::w52, 45, 6, 10},
                             {"w32_rational", Word::w32, 40, 6, 10},
                             {"w32_two_primes", Word::w32, 54, 6, 10}}),
                         [](const auto& info) { return info.param.label; });

TEST(Polynomial, EveryDegree) {
  World world({"all", Word::w64, 50, 6, 10}, {});
  for (std::size_t degree = 1; degree <= 63; ++degree)
    for (Basis basis : {Basis::power, Basis::chebyshev})
      check(world, random_polynomial(world.random, degree, basis), depth(degree, basis));
}

TEST(Polynomial, Intervals) {
  World world({"interval", Word::w64, 50, 6, 10}, {});
  struct Case {
    double a, b;
    bool level;
  };
  for (const Case c : {Case{-8, 8, true}, Case{0, 1, false}, Case{2, 3, false},
                       Case{-0.25, 0.25, false}, Case{-3, 5, true}, Case{0, 2, false}}) {
    auto p = chebyshev_interpolate([](double x) { return 1 / (1 + std::exp(-x)); }, c.a, c.b, 15);
    const PolynomialPlan plan(p);
    EXPECT_EQ(plan.interval_takes_level(), c.level);
    EXPECT_EQ(plan.depth_needed(), 4 + c.level);
    check(world, p, plan.depth_needed(), c.a, c.b);
  }
}

// A polynomial is its own fit for all weights. For another function the residual times the square
// of the weight is orthogonal to every polynomial of the degree, and the residual is small where
// the weight is large.
TEST(Polynomial, FitIsTheLeastSquares) {
  const auto weight = [](double x) { return std::exp(-2 * x * x); };
  const auto cube = chebyshev_fit([](double x) { return x * x * x - x; }, weight, -1, 3, 5);
  for (double x : {-1.0, -0.3, 0.8, 3.0}) EXPECT_NEAR(cube(x).real(), x * x * x - x, 1e-12);

  const auto f = [](double x) { return std::cos(3 * x); };
  const std::size_t degree = 9;
  const auto fit = chebyshev_fit(f, weight, -2, 2, degree);
  const auto even = chebyshev_interpolate(f, -2, 2, degree);
  const std::size_t nodes = 2 * (degree + 1);
  std::vector<double> sums(degree + 1, 0.0);
  for (std::size_t k = 0; k < nodes; ++k) {
    const double angle =
        std::numbers::pi * (static_cast<double>(k) + 0.5) / static_cast<double>(nodes);
    const double x = 2 * std::cos(angle);
    const double off = (fit(x).real() - f(x)) * weight(x) * weight(x);
    for (std::size_t j = 0; j <= degree; ++j)
      sums[j] += off * std::cos(static_cast<double>(j) * angle);
  }
  for (double sum : sums) EXPECT_NEAR(sum, 0, 1e-13);
  double near = 0, near_even = 0;
  for (double x = -0.5; x <= 0.5; x += 0.01) {
    near = std::max(near, std::fabs(fit(x).real() - f(x)));
    near_even = std::max(near_even, std::fabs(even(x).real() - f(x)));
  }
  EXPECT_LT(near, near_even / 4);
  EXPECT_THROW(chebyshev_fit(f, weight, 1, 1, 3), InvalidArgument);
  EXPECT_THROW(chebyshev_fit(f, [](double) { return 0.0; }, 0, 1, 3), InvalidArgument);
}

TEST(Polynomial, InterpolationConverges) {
  const auto f = [](double x) { return std::exp(std::sin(3 * x)); };
  double last = 1e9;
  for (std::size_t degree : {4u, 8u, 16u, 32u, 48u}) {
    const auto p = chebyshev_interpolate(f, -1, 2, degree);
    double worst = 0;
    for (int i = 0; i <= 300; ++i)
      worst = std::max(worst, std::abs(p(-1 + 0.01 * i) - f(-1 + 0.01 * i)));
    EXPECT_LT(worst, last / 2);
    last = worst;
  }
  EXPECT_LT(last, 1e-6);
  // A polynomial of at most this degree is interpolated exactly: x^2 = (T_0 + T_2) / 2.
  const auto square = chebyshev_interpolate([](double x) { return x * x; }, -1, 1, 4);
  EXPECT_NEAR(std::abs(square.coefficients[0] - 0.5), 0, 1e-15);
  EXPECT_NEAR(std::abs(square.coefficients[2] - 0.5), 0, 1e-15);
  EXPECT_NEAR(std::abs(square.coefficients[4]), 0, 1e-15);
  EXPECT_THROW(chebyshev_interpolate(f, 1, 1, 3), InvalidArgument);
  EXPECT_THROW(chebyshev_interpolate([](double) { return std::nan(""); }, 0, 1, 3),
               InvalidArgument);
}

TEST(Polynomial, GivenScalesAndConstants) {
  World world({"scales", Word::w64, 50, 3, 10}, {});
  const auto x = world.vector(0.7);
  const auto c = world.encrypt(x);
  const double scale = 1.25 * world.params->scale(1);
  const Polynomial p{{0.5, -0.25, Complex(0.1, 0.2)}, Basis::power};
  const auto y = evaluate(*world.evaluator, c, p, scale);
  EXPECT_EQ(y.scale, scale);
  std::vector<Complex> expected;
  for (const auto& z : x) expected.push_back(p(z));
  EXPECT_LE(jali::testing::max_error(world.decrypt(y), expected), tolerance(world, c, y, p));
  const auto constant = evaluate(*world.evaluator, c, {{0.75, 0.0}, Basis::chebyshev});
  EXPECT_EQ(constant.level, c.level);
  EXPECT_LE(jali::testing::max_error(world.decrypt(constant), std::vector<Complex>(x.size(), 0.75)),
            1e-9);
  // A constant polynomial is given at the scale that was asked for, too.
  EXPECT_EQ(evaluate(*world.evaluator, y, {{0.75}, Basis::power}).scale,
            world.params->scale(y.level));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-scale, kNan, kInfinity, 1e-300, 1e300}) {
    EXPECT_THROW(evaluate(*world.evaluator, c, p, bad), InvalidArgument) << bad;
    EXPECT_THROW(evaluate(*world.evaluator, c, {{0.75}, Basis::power}, bad), InvalidArgument)
        << bad;
  }
}

TEST(Polynomial, SaysWhatIsMissing) {
  World world({"errors", Word::w64, 50, 3, 10}, {});
  const auto c = world.encrypt(world.vector(0.5));
  const auto p = random_polynomial(world.random, 16, Basis::power);
  try {
    evaluate(*world.evaluator, c, p);
    FAIL() << "no DepthExhausted";
  } catch (const DepthExhausted& e) {
    EXPECT_NE(std::string(e.what()).find("takes 5 levels"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("depth=5"), std::string::npos) << e.what();
  }
  EXPECT_THROW(evaluate(*world.evaluator, world.evaluator->square(c), p), InvalidArgument);
  const auto none = std::make_shared<const rlwe::EvaluationKeys>(
      world.keygen->evaluation_keys(*world.sk, {}, false, false));
  const ckks::Evaluator keyless(world.params, world.ring, none);
  EXPECT_THROW(evaluate(keyless, c, Polynomial{{0.0, 0.0, 1.0}, Basis::power}), KeyMissing);
}

}  // namespace
}  // namespace jali::circuits::testing
