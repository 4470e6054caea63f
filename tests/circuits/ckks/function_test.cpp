#include "jali/circuits/ckks/function.h"

#include <functional>
#include <numbers>

#include "jali/approx/sampled.h"
#include "jali/circuits/ckks/arrays.h"
#include "jali/circuits/ckks/comparison.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

using approx::Interval;

/// A function, and what it is to be near.
struct Case {
  FunctionPtr f;
  std::function<double(double)> exact;
};

std::vector<Case> cases() {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto root = [](double x) { return std::sqrt(x); };
  const auto inverse_root = [](double x) { return 1 / std::sqrt(x); };
  const auto inverse = [](double x) { return 1 / x; };
  const auto error = [](double e) { return Wanted{e, {}, {}}; };
  const auto depth = [](int d) { return Wanted{{}, {}, d}; };
  return {
      {smooth(approx::sigmoid(), {-8, 8}, error(1e-4)), sigmoid},
      {smooth(approx::sigmoid(), {-8, 8}, depth(5)), sigmoid},
      {smooth(approx::tanh(), {-2, 2}, error(1e-3)), [](double x) { return std::tanh(x); }},
      {smooth(approx::gelu(), {-4, 4}, depth(5)),
       [](double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; }},
      {smooth(approx::silu(), {-3, 5}, error(1e-3)), [=](double x) { return x * sigmoid(x); }},
      {smooth(approx::exp(), {-1, 1}, Wanted{{}, 6, {}}), [](double x) { return std::exp(x); }},
      {smooth(approx::log(), {0.5, 2}, error(1e-4)), [](double x) { return std::log(x); }},
      {sign(1, 0.125, 0.05), [](double x) { return x < 0 ? -1.0 : 1.0; }},
      {sign(4, 0.5, 1e-3), [](double x) { return x < 0 ? -1.0 : 1.0; }},
      {step(0.5, 0.05, 0.01), [](double x) { return x < 0 ? 0.0 : 1.0; }},
      {relu(1, 0.02), [](double x) { return std::max(x, 0.0); }},
      {relu(5, 0.2), [](double x) { return std::max(x, 0.0); }},
      {absolute(0.5, 0.01), [](double x) { return std::fabs(x); }},
      {circuits::inverse({0.5, 4}, 1e-4), inverse},
      {circuits::inverse({0.1, 1}, 1e-3, 2), inverse},
      {circuits::inverse({1, 3}, 1e-5, 0), inverse},
      {inverse_square_root({0.25, 2}, 1e-3), inverse_root},
      {inverse_square_root({0.25, 2}, 1e-5, 1), inverse_root},
      {square_root({0.1, 2}, 1e-3), root},
      {square_root({0.25, 4}, 1e-4, 1), root},
  };
}

/// Inside the interval and outside the gap.
double number(std::mt19937_64& random, const FunctionFacts& facts) {
  std::uniform_real_distribution<double> uniform(facts.on.low, facts.on.high);
  double x = 0;
  do x = uniform(random);
  while (std::fabs(x) < facts.gap);
  return x;
}

TEST(Functions, InTheClearAreWithinTheirProvenErrors) {
  for (const Case& c : cases()) {
    const FunctionFacts& facts = c.f->facts();
    double seen = 0, largest = 0;
    for (int i = 0; i <= 200'000; ++i) {
      const double x = facts.on.low + (facts.on.high - facts.on.low) * i / 200'000;
      if (std::fabs(x) < facts.gap) continue;
      seen = std::max(seen, std::fabs((*c.f)(x)-c.exact(x)));
      largest = std::max(largest, std::fabs((*c.f)(x)));
    }
    EXPECT_LE(seen, facts.max_error * (1 + 1e-12) + 1e-14) << facts.name;
    EXPECT_LE(facts.max_error, 6 * seen) << facts.name << ": the bound says something";
    EXPECT_LE(largest, facts.largest) << facts.name;
    EXPECT_LE(facts.largest, 2 * largest) << facts.name;
  }
}

TEST(Functions, EncryptedAreWhatTheyAreInTheClearAtTheirDepth) {
  World world({"functions", Word::w64, 48, 13, 10}, {});
  for (const Case& c : cases()) {
    const FunctionFacts& facts = c.f->facts();
    SCOPED_TRACE(facts.name + ", depth " + std::to_string(facts.depth));
    ASSERT_LE(facts.depth, world.params->depth());
    std::vector<Complex> x(world.params->slots());
    for (auto& z : x) z = number(world.random, facts);
    x[0] = facts.on.low;
    x[1] = facts.on.high;
    const double peak = std::max(std::fabs(facts.on.low), std::fabs(facts.on.high));
    const auto cipher = world.encrypt(x, facts.depth, -1, 1, {peak, peak});
    const auto y = c.f->apply(*world.evaluator, cipher, facts.on);
    EXPECT_EQ(y.level, 0) << "exactly as deep as it says";
    EXPECT_LE(y.estimate.peak, facts.largest);
    const auto got = world.decrypt(y);
    double off = 0, wrong = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      off = std::max(off, std::abs(got[j] - (*c.f)(x[j].real())));
      wrong = std::max(wrong, std::abs(got[j] - c.exact(x[j].real())));
      ASSERT_LE(std::abs(got[j]), y.estimate.peak + ckks::worst_case_error(y));
    }
    EXPECT_LE(off, ckks::worst_case_error(y)) << "seed " << world.seed;
    EXPECT_LE(off, 1e-6) << "seed " << world.seed;
    EXPECT_LE(wrong, facts.max_error + 1e-6);
    const auto above = world.encrypt(x, facts.depth - 1, -1, 1, {peak, peak});
    EXPECT_THROW(c.f->apply(*world.evaluator, above, facts.on), DepthExhausted);
  }
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(Domains, NumbersThatMayLieOutsideAreRefused) {
  World world({"domain", Word::w64, 45, 6, 10}, {});
  const auto f = smooth(approx::sigmoid(), {-16, 16}, {{}, 15, {}});
  const auto x =
      world.encrypt(std::vector<Complex>(world.params->slots(), -23.0), -1, -1, 1, {23, 23});
  const std::string far = message([&] { f->apply(*world.evaluator, x); });
  for (const char* part : {"[-23, 23]", "[-16, 16]", "peak="})
    EXPECT_NE(far.find(part), std::string::npos) << far;
  const PolynomialPlan& plan = *f->polynomial();
  EXPECT_NE(message([&] { apply(*world.evaluator, plan, x); }).find("[-16, 16]"),
            std::string::npos);
  EXPECT_THROW(apply(*world.evaluator, plan, x, Interval{-17, 3}), InvalidArgument);
  EXPECT_THROW(apply(*world.evaluator, plan, x, Interval{3, -3}), InvalidArgument);
  EXPECT_THROW(apply(*world.evaluator, plan, x, Interval{NAN, 1}), InvalidArgument);
  auto unknown = world.evaluator->copy(x);
  unknown.estimate.peak = params::kUnbounded;
  EXPECT_NE(message([&] { f->apply(*world.evaluator, unknown); }).find("no bound"),
            std::string::npos);
  unknown.estimate.peak = NAN;
  EXPECT_THROW(f->apply(*world.evaluator, unknown), InvalidArgument);
  // Roundings of bounds are no numbers outside.
  auto near = world.evaluator->copy(x);
  near.estimate.peak = 16 * (1 + 0x1p-40);
  EXPECT_NO_THROW(f->apply(*world.evaluator, near));
  near.estimate.peak = 16.001;
  EXPECT_THROW(f->apply(*world.evaluator, near), InvalidArgument);
  near.estimate.peak = 16;
  near.packing.complex_values = true;
  EXPECT_NE(message([&] { f->apply(*world.evaluator, near); }).find("complex"), std::string::npos);
  // A polynomial of its own right takes any numbers.
  EXPECT_NO_THROW(apply(*world.evaluator, PolynomialPlan({{0, 0.5}, Basis::power}), x));
  EXPECT_NO_THROW(apply(*world.evaluator, PolynomialPlan({{0, 0.5}, Basis::chebyshev}), x));
}

// A peak says nothing of how small numbers can be: that takes the caller's word.
TEST(Domains, OneSidedIntervalsTakeTheCallersWord) {
  World world({"domain", Word::w64, 45, 7, 10}, {});
  const auto f = inverse({0.5, 4}, 1e-3);
  const auto x = world.encrypt(std::vector<Complex>(world.params->slots(), 2.0), -1, -1, 1, {2, 4});
  EXPECT_NE(message([&] { f->apply(*world.evaluator, x); }).find("within=(0.5, 4)"),
            std::string::npos);
  EXPECT_THROW(f->apply(*world.evaluator, x, Interval{0.4, 4}), InvalidArgument);
  EXPECT_THROW(f->apply(*world.evaluator, x, Interval{-4, -0.5}), InvalidArgument);
  EXPECT_NO_THROW(f->apply(*world.evaluator, x, Interval{0.5, 1e9})) << "the peak says the rest";
  const auto y = f->apply(*world.evaluator, x, Interval{1, 3});
  EXPECT_NEAR(world.decrypt(y)[3].real(), 0.5, 1.1e-3);
}

// Zeros behind a short vector are outside of an interval above 0: unless something stands there,
// what they become may wrap around the modulus, and everything with it.
TEST(Domains, SlotsBehindTheVector) {
  World world({"domain", Word::w64, 45, 7, 10}, {});
  const auto f = inverse({0.5, 4}, 1e-4);
  std::vector<Complex> x(world.params->slots(), 0.0);
  std::fill_n(x.begin(), 5, 2.0);
  auto c = world.encrypt(x, -1, -1, 1, {2, 4});
  c.packing = {5, false, false, 0.0};
  const auto y = f->apply(*world.evaluator, c, f->facts().on);
  for (std::size_t j = 0; j < x.size(); ++j) {
    EXPECT_NEAR(world.decrypt(y)[j].real(), j < 5 ? 0.5 : 1 / 2.25, 1.1e-4);
    if (j > 8) break;
  }
  EXPECT_EQ(y.packing.length, 5u);
  EXPECT_FALSE(y.packing.rest == 0);
  c.packing.rest = params::kUnbounded;
  EXPECT_NE(message([&] { f->apply(*world.evaluator, c, f->facts().on); }).find("behind"),
            std::string::npos);
}

TEST(Functions, ZerosStayZerosWhereTheyAreMappedToSuch) {
  World world({"zeros", Word::w64, 45, 9, 10}, {});
  auto c = world.encrypt(std::vector<Complex>(world.params->slots(), 0.0), -1, -1, 1, {1, 1});
  c.packing = {5, false, false, 0.0};
  EXPECT_TRUE(relu(1, 0.1)->apply(*world.evaluator, c).packing.rest == 0);
  EXPECT_TRUE(
      smooth(approx::tanh(), {-1, 1}, {{}, 7, {}})->apply(*world.evaluator, c).packing.rest == 0);
  EXPECT_FALSE(
      smooth(approx::sigmoid(), {-1, 1}, {{}, 7, {}})->apply(*world.evaluator, c).packing.rest ==
      0);
  EXPECT_FALSE(step(1, 0.2, 0.1)->apply(*world.evaluator, c).packing.rest == 0);
}

// What is said of the numbers says nothing of the other slots, whose polynomials may be beyond all
// bounds.
TEST(Domains, OtherSlotsHaveABoundOfTheirOwn) {
  World world({"beside", Word::w64, 45, 7, 10}, {});
  const auto f = smooth(approx::tanh(), {-1, 1}, {{}, 7, {}});
  std::vector<Complex> x(world.params->slots(), 0.75);
  std::fill_n(x.begin(), 5, 0.05);
  auto c = world.encrypt(x, -1, -1, 1, {1, 8});
  c.packing = {5, false, false, params::kUnbounded};
  const Interval within{-0.1, 0.1};
  EXPECT_NE(message([&] { f->apply(*world.evaluator, c, within); }).find("multiply by ones"),
            std::string::npos);
  c.packing.rest = 0.75;
  const auto y = f->apply(*world.evaluator, c, within);
  EXPECT_NEAR(world.decrypt(y)[0].real(), std::tanh(0.05), 1e-3);
  EXPECT_NEAR(world.decrypt(y)[9].real(), std::tanh(0.75), 1e-3);
  EXPECT_GE(y.packing.rest, y.estimate.peak);
  c.packing.rest = 1.01;
  EXPECT_THROW(f->apply(*world.evaluator, c, within), InvalidArgument);
  c.packing.rest = 0;
  EXPECT_EQ(f->apply(*world.evaluator, c, within).packing.rest, 0);
  const auto sigmoid = smooth(approx::sigmoid(), {-1, 1}, {{}, 7, {}});
  EXPECT_NEAR(sigmoid->apply(*world.evaluator, c, within).packing.rest, 0.5, 1e-12);
}

TEST(Functions, RefuseWhatIsNoRequest) {
  EXPECT_THROW(smooth(approx::exp(), {-1, 1}, {}), InvalidArgument);
  EXPECT_THROW(smooth(approx::exp(), {-1, 1}, {1e-3, 4, {}}), InvalidArgument);
  EXPECT_THROW(smooth(approx::exp(), {-1, 1}, {{}, {}, 0}), InvalidArgument);
  EXPECT_THROW(smooth(approx::exp(), {-3, 3}, {{}, {}, 1}), InvalidArgument)
      << "the interval takes it";
  EXPECT_THROW(smooth(approx::exp(), {-1, 1}, {{}, {}, 13}), InvalidArgument);
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(relu(bad, 0.1), InvalidArgument);
    EXPECT_THROW(relu(1, bad), InvalidArgument);
    EXPECT_THROW(absolute(1, bad), InvalidArgument);
    EXPECT_THROW(sign(1, 0.1, bad), InvalidArgument);
    EXPECT_THROW(step(bad, 0.1, 0.1), InvalidArgument);
    EXPECT_THROW(inverse({1, 2}, bad), InvalidArgument);
    EXPECT_THROW(square_root({1, 2}, bad), InvalidArgument);
    EXPECT_THROW(Maximum(bad, 0.1), InvalidArgument);
    EXPECT_THROW(Maximum(1, bad), InvalidArgument);
    EXPECT_THROW(ArgMax(4, 512, bad, 0.1, 0.1), InvalidArgument);
    EXPECT_THROW(ArgMax(4, 512, 1, bad, 0.1), InvalidArgument);
  }
  for (const Interval on : {Interval{0, 1}, Interval{-1, 1}, Interval{2, 1}}) {
    EXPECT_THROW(inverse(on, 1e-3), InvalidArgument);
    EXPECT_THROW(inverse_square_root(on, 1e-3), InvalidArgument);
    EXPECT_THROW(square_root(on, 1e-3), InvalidArgument);
  }
  EXPECT_THROW(inverse({1e-12, 1}, 1e-3), InvalidArgument)
      << "no degree up to 4095, nor 12 steps of two levels";
  EXPECT_THROW(inverse({1, 2}, 1e-3, 13), InvalidArgument);
  EXPECT_THROW(inverse({1, 2}, 1e-18, 0), InvalidArgument) << "what doubles hold";
}

// Steps save products and cost a level: what is told beforehand is what there is to choose from.
TEST(Functions, StepsSaveProducts) {
  const Interval on{0.01, 1};
  const auto least = inverse(on, 1e-4), steps = inverse(on, 1e-4, 3);
  EXPECT_LT(least->facts().depth, steps->facts().depth);
  EXPECT_GT(least->facts().multiplications, steps->facts().multiplications);
  EXPECT_EQ(least->polynomial() != nullptr, true);
  EXPECT_EQ(steps->polynomial() != nullptr, false);
  for (const auto& f : {least, steps}) EXPECT_LE(f->facts().max_error, 1e-4);
}

// --- comparisons ---------------------------------------------------------------------------------

TEST(Comparisons, TheLargerAndTheSmaller) {
  World world({"maximum", Word::w64, 48, 11, 10}, {});
  for (const double bound : {0.5, 1.0, 3.0}) {
    for (const bool minimum : {false, true}) {
      const Maximum f(bound, bound / 40, minimum);
      std::uniform_real_distribution<double> uniform(-bound, bound);
      std::vector<Complex> a(world.params->slots()), b(a.size());
      for (std::size_t j = 0; j < a.size(); ++j) {
        a[j] = uniform(world.random);
        b[j] = j % 3 == 0 ? a[j] + 0.01 * uniform(world.random) : uniform(world.random);
        b[j] = std::clamp(b[j].real(), -bound, bound);
      }
      const auto x = world.encrypt(a, f.depth(), -1, 1, {bound, bound});
      const auto y = world.encrypt(b, -1, -1, 1, {bound, bound});
      const auto z = f.apply(*world.evaluator, x, y);
      EXPECT_EQ(z.level, 0);
      EXPECT_LE(z.estimate.peak, bound + f.max_error());
      const auto got = world.decrypt(z);
      for (std::size_t j = 0; j < a.size(); ++j) {
        const double p = a[j].real(), q = b[j].real();
        ASSERT_NEAR(got[j].real(), minimum ? std::min(p, q) : std::max(p, q), f.max_error() + 1e-6);
        ASSERT_NEAR(got[j].real(), f(p, q), std::min(1e-6, ckks::worst_case_error(z)));
        ASSERT_LE(std::abs(got[j]), z.estimate.peak + ckks::worst_case_error(z));
      }
      EXPECT_THROW(f.apply(*world.evaluator, world.encrypt(a, 3, -1, 1, {bound, bound}), y),
                   DepthExhausted);
      EXPECT_THROW(f.apply(*world.evaluator, world.encrypt(a, -1, -1, 1, {bound, 1.1 * bound}), y),
                   InvalidArgument);
    }
  }
}

TEST(Comparisons, TheLargestOfSeveral) {
  for (const std::size_t count : {2u, 3u, 5u, 8u}) {
    const std::size_t slots = 512;
    const ArgMax f(count, slots, 0.5, 0.125, 0.1);
    World world({"argmax", Word::w64, 48, f.depth(), 10}, f.rotations());
    ASSERT_EQ(world.params->slots(), slots);
    std::vector<Complex> x(slots, 0.0);
    const std::size_t winner = world.random() % count;
    std::vector<double> numbers;
    std::uniform_real_distribution<double> uniform(-0.5, 0.3);
    for (std::size_t j = 0; j < count; ++j) {
      x[j] = j == winner ? 0.45 : uniform(world.random);
      numbers.push_back(x[j].real());
    }
    auto c = world.encrypt(x, -1, -1, 1, {0.3, 0.5});
    c.packing = {static_cast<std::uint32_t>(count), false, false, 0.0};
    const auto y = f.apply(*world.evaluator, c);
    EXPECT_EQ(y.level, 0);
    EXPECT_EQ(y.packing.length, count);
    EXPECT_FALSE(y.packing.rest == 0);
    const auto got = world.decrypt(y);
    const auto clear = f(numbers);
    for (std::size_t j = 0; j < count; ++j) {
      EXPECT_NEAR(got[j].real(), j == winner ? 1 : 0, f.max_error() + 1e-6)
          << j << " of " << count << ", seed " << world.seed;
      EXPECT_NEAR(got[j].real(), clear[j], 1e-6);
    }
    EXPECT_LE(f.max_error(), 0.1);
    c.packing.rest = params::kUnbounded;
    EXPECT_THROW(f.apply(*world.evaluator, c), InvalidArgument);
    c.packing = {static_cast<std::uint32_t>(count + 1), false, false, 0.0};
    EXPECT_THROW(f.apply(*world.evaluator, c), InvalidArgument);
  }
  // Of all slots.
  const ArgMax f(4, 4, 1, 0.25, 0.1);
  World world({"argmax", Word::w64, 48, f.depth(), 10}, f.rotations());
  const std::vector<Complex> x{-0.5, 0.9, -1.0, 0.6};
  const auto got = world.decrypt(f.apply(*world.evaluator, world.encrypt(x, -1, 2, 1, {0.8, 1})));
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(got[j].real(), j == 1 ? 1 : 0, 0.11);
  EXPECT_THROW(ArgMax(1, 512, 1, 0.1, 0.1), InvalidArgument);
  EXPECT_THROW(ArgMax(300, 512, 1, 0.1, 0.1), InvalidArgument);
}

}  // namespace
}  // namespace jali::circuits::testing
