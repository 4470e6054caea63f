// Counts how often whole bootstrappings are wrong, on rings, weights and ranges for which that
// happens often enough, and compares the count with the bound that the parameters state.
#include "jali/bootstrap/failure.h"

#include <algorithm>

#include "jali/params/ckks/presets.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

Case rare(int weight, int range, int degree, int doublings) {
  Case c{"rare", Word::w64, 45, 3};
  c.bootstrap.order = BootstrapOrder::slots_first;
  c.bootstrap.weight = weight;
  c.bootstrap.range = range;
  c.bootstrap.degree = degree;
  c.bootstrap.doublings = doublings;
  c.bootstrap.cts_levels = c.bootstrap.stc_levels = 1;
  return c;
}

/// The errors of bootstrappings of fresh vectors.
struct Outcome {
  /// For each bootstrapping, the absolute errors of all real and imaginary parts.
  std::vector<std::vector<double>> errors;
  /// An error that no right slot exceeds: 16 predicted standard deviations, which include the noise
  /// and the cosine's error at frequent I, plus the bound of the sine's error.
  double noise = 0;
};

Outcome bootstrap_many(World& world, std::size_t rounds) {
  constexpr std::size_t kBatch = 8;
  const std::size_t slots = std::size_t{1} << world.bootstrapper->plan().options().log_slots;
  const int level = world.params->bootstrap()->input_level();
  Outcome run;
  while (run.errors.size() < rounds) {
    const auto v = world.vector(kBatch * slots);
    const auto y = world.bootstrapper->apply(world.encrypt(v, level, 0, kBatch));
    run.noise = 16 * std::exp2(-world.evaluator->noise().precision_bits(y.estimate, y.scale)) +
                world.bootstrapper->plan().worst_sine_error(1);
    const auto got = world.decrypt(y);
    for (std::size_t b = 0; b < kBatch; ++b) {
      auto& errors = run.errors.emplace_back();
      for (std::size_t j = b * slots; j < (b + 1) * slots; ++j) {
        errors.push_back(std::fabs(got[j].real() - v[j].real()));
        errors.push_back(std::fabs(got[j].imag() - v[j].imag()));
      }
    }
  }
  return run;
}

std::size_t count_beyond(const std::vector<double>& errors, double error) {
  return static_cast<std::size_t>(
      std::ranges::count_if(errors, [&](double e) { return !(e < error); }));
}

/// P(|I| >= i). P(I = n) is the density at n of a sum of h + 1 numbers that are uniform in [-1/2,
/// 1/2), the Irwin-Hall distribution.
double exact_tail(int weight, int i) {
  const int terms = weight + 1;
  long double total = 0;
  for (int n = i; 2 * n < terms; ++n) {
    long double binomial = 1;  // (-1)^k binomial(terms, k)
    for (int k = 0; 2 * k < terms + 2 * n; ++k) {
      total += binomial * std::pow(n + terms / 2.0L - k, terms - 1);
      binomial *= -static_cast<long double>(terms - k) / (k + 1);
    }
  }
  return static_cast<double>(2 * total / std::tgamma(static_cast<long double>(terms)));
}

/// A bootstrapping of 2^log_slots slots is wrong if any of its |I| is at least i. Expects that
/// `seen` wrong ones of `rounds` agree with the distribution of I. Expects that `log2_bound`, log2
/// of the stated bound on the probability, is above the exact value by less than 5, a factor of 32.
void expect_as_often(std::size_t seen, std::size_t rounds, int weight, int i, int log_slots,
                     double log2_bound) {
  const double count = std::ldexp(2, log_slots);
  const double exact = -std::expm1(count * std::log1p(-exact_tail(weight, i)));
  const double expected = exact * static_cast<double>(rounds);
  EXPECT_GE(seen, 1u);
  EXPECT_NEAR(static_cast<double>(seen), expected, 5 * std::sqrt(expected) + 1);
  EXPECT_LT(std::log2(exact), log2_bound);
  EXPECT_GT(std::log2(exact) + 5, log2_bound);
}

// In hundreds of whole bootstrappings the integers I leave the range now and then. Those
// bootstrappings are wrong, as many as the distribution of I says, and all others are right in
// every slot.
TEST(Failure, WholeBootstrappingsAreLostAsOftenAsTheBoundSays) {
  const int weight = 16, range = 4;
  World world(rare(weight, range, 30, 1), {}, true);
  SCOPED_TRACE(world.seed);
  const Outcome run = bootstrap_many(world, 400);
  std::size_t lost = 0, wrong = 0;
  for (const auto& errors : run.errors) {
    lost += count_beyond(errors, 0.1) > 0;
    wrong += count_beyond(errors, run.noise) > 0;
  }
  EXPECT_EQ(lost, wrong);
  expect_as_often(wrong, run.errors.size(), weight, range + 1, 9, log2_beyond(*world.params, 0.1));
}

// Rare integers inside the range cause larger errors, too, as often as stated. In this test the
// error of the cosine is below 2^-8 if |I| <= 3, and above it otherwise.
TEST(Failure, RareIntegersAreOffAsOftenAsTheBoundSays) {
  const int weight = 16, log_slots = 3;
  World world(rare(weight, 5, 16, 2), {log_slots}, true);
  SCOPED_TRACE(world.seed);
  const double error = 0x1p-8, sine = world.bootstrapper->plan().worst_sine_error(1);
  const Outcome run = bootstrap_many(world, 400);
  std::size_t seen = 0;
  for (const auto& errors : run.errors) seen += count_beyond(errors, error + sine) > 0;
  expect_as_often(seen, run.errors.size(), weight, 4, log_slots,
                  log2_beyond(*world.params, error, log_slots));
}

// For presets, log2_beyond(error) is the probability of the least |I| at which the error of the
// cosine exceeds `error`. These |I| are in the table of docs/math/bootstrapping.md, whose errors
// are multiplied by 2^ratio_bits.
TEST(Failure, OfPresetsIsThatOfTheirCosine) {
  const auto n16 = ckks::Params::create(params::preset("n16_fast"));
  const auto n15 = ckks::Params::create(params::preset("n15_small"));
  const auto at = [](const ckks::Params& p, int i) {
    return params::log2_bootstrap_failure(32, i - 0.5, p.n());
  };
  EXPECT_EQ(log2_beyond(*n16, 0x1p-18), at(*n16, 12));
  EXPECT_EQ(log2_beyond(*n16, 0x1p-16), at(*n16, 15));
  EXPECT_EQ(log2_beyond(*n16, 0x1p-12), at(*n16, 16));
  // A sum of 33 such numbers never rounds to more than 16.
  EXPECT_LT(log2_beyond(*n16, 0x1p-8), -1e5);
  EXPECT_EQ(log2_beyond(*n15, 0x1p-12), at(*n15, 11));
  EXPECT_EQ(log2_beyond(*n15, 0x1p-8), at(*n15, 12));
  EXPECT_EQ(log2_beyond(*n15, 0x1p-6), at(*n15, 15));
  EXPECT_EQ(log2_beyond(*n15, 0x1p-2), at(*n15, 16));
  EXPECT_EQ(log2_beyond(*n15, 0x1p-23), 0);  // in every bootstrapping
  // With half the slots it is half as likely.
  EXPECT_NEAR(log2_beyond(*n16, 0x1p-16, 14), log2_beyond(*n16, 0x1p-16) - 1, 1e-9);
  EXPECT_THROW(log2_beyond(*n16, 0), InvalidArgument);
  ckks::Literal plain = params::preset("n13_d3");
  EXPECT_THROW(log2_beyond(*ckks::Params::create(plain), 1), InvalidArgument);
}

}  // namespace
}  // namespace jali::bootstrap::testing
