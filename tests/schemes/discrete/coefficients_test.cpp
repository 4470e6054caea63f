// Numbers in coefficients: sums and products with integers modulo any T.
#include <limits>

#include "world.h"

namespace jali::discrete {
namespace {

class DiscreteCoefficients : public ::testing::TestWithParam<Case> {
 protected:
  World w{GetParam()};
  const PlainModulus& t() const { return w.params->modulus(); }
};

TEST_P(DiscreteCoefficients, EveryResidueIsReadBackAtEveryLevel) {
  JALI_SEEDED(rng);
  Numbers x = w.numbers(rng, t().low(), t().high());
  x[0] = t().low(), x[1] = t().high(), x[2] = 0, x[3] = 1, x[4] = -1;
  for (int level = 0; level <= w.params->top(); ++level) {
    const Ciphertext a = w.encrypt(x, t().low(), t().high(), level);
    EXPECT_EQ(w.decrypt(a), x);
    expect_noise(w, a, 8, "fresh");
    const Ciphertext b = w.secret_encryptor.encrypt(
        w.encoder().encode(x, 1, w.noise().range(t().low(), t().high())), level);
    EXPECT_EQ(w.decrypt(b), x);
  }
}

TEST_P(DiscreteCoefficients, SumsAndIntegers) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t b = t().high() / 4;
  const Numbers x = w.numbers(rng, -b, b, 2 * kN), y = w.numbers(rng, 0, b);
  for (int level = 0; level <= w.params->top(); ++level) {
    const Ciphertext cx = w.encrypt(x, -b, b, level, 2), cy = w.encrypt(y, 0, b, level);
    const auto py = w.encoder().encode_clear(y, 1);
    EXPECT_EQ(w.decrypt(e.add(cx, cy)), plus(x, y));
    EXPECT_EQ(w.decrypt(e.sub(cx, cy)), minus(x, y));
    EXPECT_EQ(w.decrypt(e.negate(cx)), times(x, {-1}));
    EXPECT_EQ(w.decrypt(e.add_plain(cx, py)), plus(x, y));
    EXPECT_EQ(w.decrypt(e.sub_plain(cx, py)), minus(x, y));
    EXPECT_EQ(w.decrypt(e.add_integer(cx, -b)), plus(x, {-b}));
    EXPECT_EQ(w.decrypt(e.multiply_integer(cx, -3)), times(x, {-3}));
    expect_noise(w, e.multiply_integer(cx, -3), 8, "integer");
    for (int to = 0; to < level; ++to) {
      const Ciphertext low = e.drop_to(e.add(cx, cy), to);
      EXPECT_EQ(w.decrypt(low), plus(x, y));
      expect_noise(w, low, 8, "drop_to");
    }
    if (level > 0) {
      EXPECT_EQ(w.decrypt(e.add(cx, e.drop_to(cx, level - 1))), times(x, {2}));
    }
  }
}

TEST_P(DiscreteCoefficients, ResiduesWrap) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Numbers x = w.numbers(rng, -most, most), y = w.numbers(rng, -most, most);
  const Ciphertext a = w.encrypt_residues(x), b = w.encrypt_residues(y);
  const auto expect = [&](const Ciphertext& c, auto f) {
    const Numbers got = w.decrypt(c);
    for (std::size_t i = 0; i < kN; ++i) ASSERT_EQ(got[i], residue(f(Wide{x[i]}, Wide{y[i]}), t()));
  };
  expect(a, [](Wide u, Wide) { return u; });
  expect(e.add(a, b), [](Wide u, Wide v) { return u + v; });
  expect(e.sub(a, b), [](Wide u, Wide v) { return u - v; });
  expect(e.multiply_integer(a, 5), [](Wide u, Wide) { return 5 * u; });
  expect(e.add_integer(a, most), [&](Wide u, Wide) { return u + most; });
}

TEST_P(DiscreteCoefficients, WhatSlotsDoIsRefused) {
  const Evaluator e = w.evaluator({1});
  const Ciphertext a = w.encrypt({1, 2, 3}, 0, 3);
  const auto plain = w.encoder().encode_clear(Numbers{1}, 1);
  EXPECT_THROW(e.multiply(a, a), InvalidArgument);
  EXPECT_THROW(e.multiply_plain(a, plain), InvalidArgument);
  EXPECT_THROW(e.rotate(a, 1), InvalidArgument);
  EXPECT_THROW(e.swap_rows(a), InvalidArgument);
  EXPECT_THROW(e.hoist(a), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteCoefficients, ::testing::ValuesIn(coefficient_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::discrete
