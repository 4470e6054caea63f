#include "jali/circuits/ckks/modular_reduction.h"

#include <numbers>

#include "support.h"

namespace jali::circuits::testing {
namespace {

// Every kind of reduction: wide and narrow ranges, a higher degree or more doublings, without and
// with an arcsine.
std::vector<ReductionOptions> kinds() {
  return {{16, 30, 3, 1}, {16, 62, 2, 1}, {12, 30, 3, 1}, {3, 14, 2, 1},
          {3, 40, 0, 1},  {16, 62, 2, 3}, {16, 62, 2, 5}, {12, 30, 3, 7}};
}

std::string name(const ReductionOptions& o) {
  return "range " + std::to_string(o.range) + " degree " + std::to_string(o.degree) +
         " doublings " + std::to_string(o.doublings) + " arcsin " + std::to_string(o.inverse_sine);
}

// |cos - interpolant| is at most twice the sum of the Chebyshev coefficients that are left out,
// which are 2 J_k(a) <= 2 (a/2)^k / k!. Each doubling makes the error at most four times as large.
// The error of the arcsine's series is that of the first term left out.
TEST(ModularReduction, ErrorIsTheFormulas) {
  for (const auto& o : kinds()) {
    const ModularReduction f(o);
    const double a = 2 * std::numbers::pi * (o.range + 0.25) / std::exp2(o.doublings);
    double left_out = 0;
    for (int k = o.degree + 2; k < o.degree + 60; k += 2) {
      left_out += 2 * std::exp(k * std::log(a / 2) - std::lgamma(k + 1.0));
    }
    const double interpolation = 2 * left_out * std::pow(4, o.doublings) / 6 + 1e-13;
    EXPECT_LE(f.interpolation_error(), interpolation) << name(o);
    EXPECT_LE(f.interpolation_error_rms(32), f.interpolation_error()) << name(o);
    for (double distance : {0x1p-6, 0x1p-8, 0x1p-10}) {
      const double y = 2 * std::numbers::pi * distance;
      const double c = o.inverse_sine == 1   ? 1.0 / 6
                       : o.inverse_sine == 3 ? 3.0 / 40
                       : o.inverse_sine == 5 ? 15.0 / 336
                                             : 105.0 / 3456;
      const double sine = c * std::pow(y, o.inverse_sine + 2) / (2 * std::numbers::pi);
      EXPECT_LE(f.error(distance), 1.01 * sine + f.interpolation_error()) << name(o);
      EXPECT_GE(f.error(distance), 0.9 * sine - f.interpolation_error()) << name(o);
    }
  }
}

// The interpolant is weighted by how often each integer occurs under a sparse secret. It is more
// exact at frequent integers and less exact at rare ones: the error at an integer is about the
// average error divided by the fourth root of the integer's density.
TEST(ModularReduction, RareIntegersAreLessExact) {
  for (const auto& o : {ReductionOptions{16, 30, 3}, {16, 24, 3}, {16, 44, 2}, {12, 24, 3}}) {
    const ModularReduction even(o);
    ReductionOptions options = o;
    options.weight = 32;
    const ModularReduction weighted(options);
    SCOPED_TRACE(name(o));
    const double rms = weighted.interpolation_error_rms(32);
    EXPECT_LT(rms, even.interpolation_error_rms(32) / 4);
    for (int i = -o.range; i <= o.range; ++i) {
      const double density = std::exp(-6.0 * i * i / 33);
      EXPECT_LT(std::fabs(weighted(i)), 6 * rms / std::pow(density, 0.25)) << i;
    }
  }
}

TEST(ModularReduction, RefusesWhatItCannotDo) {
  EXPECT_THROW(ModularReduction({0, 30, 3, 1}), InvalidArgument);
  EXPECT_THROW(ModularReduction({16, 31, 3, 1}), InvalidArgument);
  EXPECT_THROW(ModularReduction({16, 30, -1, 1}), InvalidArgument);
  EXPECT_THROW(ModularReduction({16, 30, 3, 2}), InvalidArgument);
  EXPECT_THROW(ModularReduction({16, 30, 3, 1, -1}), InvalidArgument);
  const ModularReduction f({16, 30, 3, 1});
  World world({"shallow", Word::w64, 55, 7}, {});
  const auto x = world.encrypt(std::vector<Complex>(world.params->slots(), 0.01));
  EXPECT_THROW(f.apply(*world.evaluator, x, 0x1p55, 32), DepthExhausted);
}

class ModularReductions : public ::testing::TestWithParam<Scheme> {};

// The slots hold integers of the distribution that a raised ciphertext has, plus small messages.
// The result is f of them, and the noise is neither much larger nor much smaller than the estimate.
TEST_P(ModularReductions, ComputesItsFunction) {
  auto all = kinds();
  all.push_back({16, 30, 3, 1, 32});
  all.push_back({16, 50, 2, 1, 32});
  for (const auto& o : all) {
    const ModularReduction f(o);
    Scheme scheme = GetParam();
    scheme.depth = f.levels() + 1;
    World world(scheme, {});
    const int weight = std::min(32, 4 * o.range);
    std::uniform_real_distribution<double> half(-0.5, 0.5);
    std::vector<Complex> x(world.params->slots()), inputs, expected;
    for (auto& z : x) {
      double sum = 100;
      while (std::fabs(sum) > o.range) {
        sum = 0;
        for (int k = 0; k <= weight; ++k) sum += half(world.random);
      }
      z = std::round(sum) + half(world.random) * 0x1p-7;
      if (std::fabs(z.real()) > o.range) z = 0;
      inputs.push_back(z * f.input_factor());
      expected.emplace_back(f(z.real()));
    }
    const int level = world.params->depth() - 1;  // not the top
    const double scale = world.params->scale(level - f.levels()) * 1.25;
    const auto y = f.apply(*world.evaluator, world.encrypt(inputs, level), scale, weight);
    EXPECT_EQ(y.level, level - f.levels());
    EXPECT_EQ(y.scale, scale);
    SCOPED_TRACE(scheme.label + " " + name(o));
    // The estimate counts the interpolant's error, which is not in `expected`.
    const double wrong = f.interpolation_error_rms(weight) / std::sqrt(2.0);
    const double predicted = std::exp2(-world.evaluator->noise().precision_bits(y.estimate, scale));
    if (wrong < predicted / 4) world.expect(y, expected, 0.6, 1.5);
    // The result is also x - round(x), the reduction, up to the stated error.
    double worst = 0;
    const auto got = world.decrypt(y);
    for (std::size_t j = 0; j < x.size(); ++j) {
      worst = std::max(worst, std::abs(got[j] - (x[j] - std::round(x[j].real()))));
    }
    // The noise depends on the integer; at some it is several times the average.
    EXPECT_LE(worst, f.error(0x1p-8) + 24 * predicted);
  }
}

INSTANTIATE_TEST_SUITE_P(Words, ModularReductions,
                         ::testing::Values(Scheme{"w64", Word::w64, 58},
                                           Scheme{"w52", Word::w52, 48},
                                           Scheme{"w32", Word::w32, 56}),
                         [](const auto& test_info) { return test_info.param.label; });

}  // namespace
}  // namespace jali::circuits::testing
