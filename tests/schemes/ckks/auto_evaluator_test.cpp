// The automatic evaluator's results are right at all levels of the operands and with all work that
// they still owe.
#include <cstring>
#include <functional>

#include "fixture.h"

namespace jali::testing {
namespace {

class AutoEvaluatorTest : public ::testing::TestWithParam<Scheme> {
 protected:
  double tolerance() const { return std::exp2(18 - GetParam().scale_bits); }
};

TEST_P(AutoEvaluatorTest, SumOfProductsOwesOneRelinearisation) {
  World w(GetParam(), {});
  const auto x = w.vector(), y = w.vector();
  const auto a = w.encrypt(x), b = w.encrypt(y);
  const auto& e = *w.automatic;
  const auto lazy = e.add(e.multiply(a, b), e.square(a));
  EXPECT_EQ(lazy.parts.size(), 3u);
  EXPECT_EQ(lazy.level, w.params->depth());
  EXPECT_EQ(e.effective_level(lazy), w.params->depth() - 1);
  const auto settled = e.normalise(lazy);
  EXPECT_EQ(settled.parts.size(), 2u);
  EXPECT_EQ(settled.scale, w.params->scale(settled.level));
  std::vector<Complex> expected(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) expected[j] = x[j] * y[j] + x[j] * x[j];
  EXPECT_LT(max_error(w.decrypt(lazy), expected), tolerance());
  EXPECT_LT(max_error(w.decrypt(settled), expected), tolerance());
}

// A sum of products that is computed at once has the bits and the estimate of one that is computed
// step by step.
TEST_P(AutoEvaluatorTest, ProductsToBeComputedGiveTheSameBits) {
  World w(GetParam(), {});
  const auto& e = *w.automatic;
  const auto factor = [&](int level) {
    return std::make_shared<const ckks::Ciphertext>(w.encrypt(w.vector(0.7), level));
  };
  const auto a = factor(-1), b = factor(-1), low = factor(w.params->depth() - 1);
  const auto same = [](const ring::Poly& x, const ring::Poly& y) {
    return x.bytes() == y.bytes() && std::memcmp(x.data(), y.data(), x.bytes()) == 0;
  };
  const auto expect_same = [&](const ckks::ProductSum& sum, const ckks::Ciphertext& steps) {
    const auto at_once = e.settle(sum), expected = e.normalise(steps);
    EXPECT_EQ(at_once.level, sum.level() - 1);
    EXPECT_EQ(at_once.scale, expected.scale);
    ASSERT_EQ(at_once.parts.size(), 2u);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(at_once.parts[i], expected.parts[i])) << i;
    EXPECT_EQ(e.expand(sum).parts.size(), 3u);
    const auto expanded = e.normalise(e.expand(sum));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(expanded.parts[i], expected.parts[i])) << i;
    EXPECT_NEAR(at_once.estimate.variance / expected.estimate.variance, 1, 1e-12);
    EXPECT_NEAR(at_once.estimate.error / expected.estimate.error, 1, 1e-12);
    EXPECT_EQ(at_once.estimate.peak, expected.estimate.peak);
  };
  expect_same(e.product(a, b), e.multiply(*a, *b));
  expect_same(e.product(a, a), e.square(*a));
  expect_same(e.product(a, low), e.multiply(*a, *low));
  auto sum = e.join(e.product(a, b), e.product(b, b));
  sum.constant = 0.25;
  expect_same(sum, e.add_scalar(e.add(e.multiply(*a, *b), e.square(*b)), 0.25));
  sum.constant = Complex(0.25, -0.5);
  expect_same(sum, e.add_scalar(e.add(e.multiply(*a, *b), e.square(*b)), sum.constant));
  // Here the factors themselves still owe a relinearisation.
  const auto raw = std::make_shared<const ckks::Ciphertext>(e.multiply(*a, *b));
  expect_same(e.product(raw, a), e.multiply(*raw, *a));
  expect_same(e.product(raw, raw), e.square(*raw));
}

TEST_P(AutoEvaluatorTest, ProductsToBeComputedAreCheckedAtOnce) {
  World w(GetParam(), {});
  const auto& e = *w.automatic;
  const auto a = std::make_shared<const ckks::Ciphertext>(w.encrypt(w.vector()));
  const auto zero = std::make_shared<const ckks::Ciphertext>(w.encrypt(w.vector(), 0));
  EXPECT_THROW((void)e.product(a, zero), DepthExhausted);
  const auto two = std::make_shared<const ckks::Ciphertext>(w.evaluator->stack(*a, *a));
  EXPECT_THROW((void)e.product(a, two), InvalidArgument);
  const auto low = std::make_shared<const ckks::Ciphertext>(w.encrypt(w.vector(), 1));
  auto sum = e.product(a, a);
  EXPECT_FALSE(e.can_join(sum, e.product(low, low)));
  EXPECT_THROW((void)e.join(sum, e.product(low, low)), InvalidArgument);
  for (std::size_t k = 1; k < e.kMostProducts; ++k) sum = e.join(sum, e.product(a, a));
  EXPECT_FALSE(e.can_join(sum, e.product(a, a)));
}

TEST_P(AutoEvaluatorTest, RandomProgramsMatchTheClear) {
  World w(GetParam());
  const auto& e = *w.automatic;
  struct Value {
    ckks::Ciphertext c;
    std::vector<Complex> z;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<Value> pool;
    for (int i = 0; i < 3; ++i) {
      auto z = w.vector(0.7);
      auto c = w.encrypt(z, i == 0 ? 1 : -1, -1, 1, {kMagnitude, 1});
      pool.push_back({std::move(c), std::move(z)});
    }
    for (int step = 0; step < 30; ++step) {
      const Value& a = pool[w.random() % pool.size()];
      const Value& b = pool[w.random() % pool.size()];
      Value out;
      out.z = a.z;
      const auto p = w.vector(0.7);
      const Complex s = p[0];
      const auto each = [&](const std::function<Complex(std::size_t)>& f) {
        for (std::size_t j = 0; j < out.z.size(); ++j) out.z[j] = f(j);
      };
      const bool room = e.effective_level(a.c) > 0 && e.effective_level(b.c) > 0;
      try {
        switch (w.random() % 9) {
          case 0:
            out.c = e.add(a.c, b.c);
            each([&](auto j) { return a.z[j] + b.z[j]; });
            break;
          case 1:
            out.c = e.sub(a.c, b.c);
            each([&](auto j) { return a.z[j] - b.z[j]; });
            break;
          case 2:
            if (!room) continue;
            out.c = e.multiply(a.c, b.c);
            each([&](auto j) { return a.z[j] * b.z[j]; });
            break;
          case 3:
            if (!room) continue;
            out.c = e.multiply_vector(a.c, p);
            each([&](auto j) { return a.z[j] * p[j]; });
            break;
          case 4:
            out.c = e.add_vector(a.c, p);
            each([&](auto j) { return a.z[j] + p[j]; });
            break;
          case 5:
            if (!room) continue;
            out.c = e.multiply_scalar(a.c, s);
            each([&](auto j) { return a.z[j] * s; });
            break;
          case 6:
            out.c = e.rotate(a.c, 4);
            each([&](auto j) { return a.z[(j + 4) % a.z.size()]; });
            break;
          case 7:
            out.c = e.conjugate(a.c);
            each([&](auto j) { return std::conj(a.z[j]); });
            break;
          default:
            out.c = e.negate(a.c);
            each([&](auto j) { return -a.z[j]; });
            break;
        }
      } catch (const RangeExceeded&) {
        continue;
      }
      double largest = 0;
      for (const auto& z : out.z) largest = std::max(largest, std::abs(z));
      if (largest > 8) continue;
      ASSERT_LT(max_error(w.decrypt(out.c), out.z), 64 * tolerance())
          << "round " << round << " step " << step << " seed " << w.seed;
      pool.push_back(std::move(out));
    }
  }
}

TEST_P(AutoEvaluatorTest, SmallIntegersCostNoLevel) {
  World w(GetParam(), {});
  const auto x = w.vector();
  const auto a = w.encrypt(x);
  EXPECT_EQ(w.automatic->multiply_scalar(a, 3).scale, a.scale);
  const auto turned = w.automatic->multiply_scalar(a, Complex(0, -2));
  EXPECT_EQ(turned.scale, a.scale);
  auto expected = x;
  for (auto& z : expected) z *= Complex(0, -2);
  w.expect(turned, expected, 0.85, 1.2);
}

TEST_P(AutoEvaluatorTest, SumFillsTheSlots) {
  std::vector<int> rotations;
  for (int step = 1; step < 512; step *= 2) rotations.push_back(step);
  World w(GetParam(), rotations);
  const auto x = w.vector(0.1);
  const auto a = w.encrypt(x);
  Complex total = 0;
  for (const auto& z : x) total += z;
  const auto all = w.decrypt(w.automatic->sum(a));
  for (const auto& z : all) ASSERT_LT(std::abs(z - total), 64 * tolerance());
  const auto windows = w.decrypt(w.automatic->sum(a, 4));
  for (std::size_t j = 0; j < x.size(); ++j) {
    Complex expected = 0;
    for (std::size_t k = 0; k < 4; ++k) expected += x[(j + k) % x.size()];
    ASSERT_LT(std::abs(windows[j] - expected), 64 * tolerance());
  }
  EXPECT_THROW(w.automatic->sum(a, 3), InvalidArgument);
}

TEST_P(AutoEvaluatorTest, ExhaustedDepthSaysWhatWouldDo) {
  World w(GetParam(), {});
  const auto a = w.encrypt(w.vector(), 0);
  try {
    w.automatic->multiply(a, a);
    FAIL() << "expected DepthExhausted";
  } catch (const DepthExhausted& error) {
    const std::string depth = "depth=" + std::to_string(w.params->depth() + 1);
    EXPECT_NE(std::string(error.what()).find(depth), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, AutoEvaluatorTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
