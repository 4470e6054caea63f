// Budgets: refusals come before anything is wrong, and name a depth that would do.
#include <regex>

#include "jali/rlwe/secret/decryptor.h"
#include "world.h"

namespace jali::discrete {
namespace {

int advised_depth(const std::string& text) {
  std::smatch depth;
  EXPECT_TRUE(std::regex_search(text, depth, std::regex("depth=(\\d+)"))) << text;
  return depth.empty() ? 0 : std::stoi(depth[1]);
}

template <class F>
std::optional<std::string> exhausted(F f) {
  try {
    f();
    return std::nullopt;
  } catch (const DepthExhausted& error) {
    return error.what();
  }
}

const auto kWrap = Overflow::wrap;

class DiscreteDepth : public ::testing::TestWithParam<Case> {};

// `depth` squarings of sums of two, and not one more.
TEST_P(DiscreteDepth, ParametersAllowTheirDepth) {
  JALI_SEEDED(rng);
  World w(GetParam());
  const Evaluator e = w.evaluator();
  const PlainModulus& t = w.params->modulus();
  Numbers x = w.numbers(rng, t.low(), t.high());
  Ciphertext a = w.encrypt_residues(x);
  for (int i = 0; i < w.params->depth(); ++i) {
    a = e.square(e.add(a, a));
    for (auto& v : x) v = residue(Wide{residue(Wide{v} * 2, t)} * residue(Wide{v} * 2, t), t);
    EXPECT_EQ(w.decrypt(a), x) << i;
    EXPECT_GT(e.noise_budget(a), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteDepth, ::testing::ValuesIn(slot_setups()),
                         [](const auto& info) { return info.param.label; });

TEST(DiscreteNoise, AdviceIsTrueOfProducts) {
  for (const Multiplication m : {Multiplication::bgv, Multiplication::bfv}) {
    Case setup{"", Word::w52, 65537, 0, 1, m};
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 3);
      World w(setup);
      const Evaluator e = w.evaluator();
      const Numbers x(kN, 2);
      Ciphertext a = w.encrypt(x, 2, 2);
      const auto refused = exhausted([&] {
        for (int i = 0; i < 3; ++i) a = e.square(a);
      });
      if (!refused) {
        EXPECT_EQ(w.decrypt(a), Numbers(kN, 256));
        EXPECT_GT(attempt, 0);
        break;
      }
      setup.depth = advised_depth(*refused);
    }
  }
}

/// The coefficients of the noise.
std::vector<double> noise_of(const World& w, const Ciphertext& a) {
  rlwe::Plaintext x = rlwe::Decryptor(w.secret, w.host).decrypt(a);
  std::vector<std::uint64_t> t;
  for (const PrimeIndex i : x.poly.primes()) {
    t.push_back(w.params->modulus().value() % w.host->prime(i));
  }
  w.host->ops().mul_scalar(x.poly.view(), x.poly.view(), t);
  w.host->to_coeff(x.poly);
  return ring::to_doubles(*w.host, x.poly, w.params->modulus().as_double());
}

double variance(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum / static_cast<double>(x.size());
}

// The sources from above and from below. Of random residues, mu / T has the variance 1/12. A
// variance of 8 N samples of one key is within a fifth: the weight of the secret has a standard
// deviation of 2.2% of its mean, and the sample one of 1.6%.
TEST(DiscreteNoise, SourcesHaveTheVarianceOfTheirFormulas) {
  JALI_SEEDED(rng);
  World w({"", Word::w52, 65537, 0, 2, Multiplication::bgv, Packing::slots, 3});
  const Evaluator e = w.evaluator({1});
  const PlainModulus& t = w.params->modulus();
  const rlwe::NoiseSources sources(*w.params);
  const Numbers x = w.numbers(rng, t.low(), t.high(), 8 * kN);
  const auto plaintext = w.encoder().encode(x, 8, w.noise().residues());
  const double message = 1.0 / 12;
  const auto expect = [](double measured, double formula, const char* what) {
    EXPECT_LT(measured, 1.2 * formula) << what;
    EXPECT_GT(measured, 0.8 * formula) << what;
  };
  const Ciphertext a = w.secret_encryptor.encrypt(plaintext), b = w.encryptor.encrypt(plaintext);
  const double secret = message + sources.error().variance;
  expect(variance(noise_of(w, a)), secret, "secret key");
  expect(variance(noise_of(w, b)), secret + sources.public_key().variance, "public key");
  // Divided by a level, nothing of a is left but the rounding.
  expect(variance(noise_of(w, e.rescale(a))), sources.rounding().variance, "division");
  const Ciphertext turned = e.rotate(a, 1);
  expect(variance(noise_of(w, turned)), secret + sources.key_switch(turned.level).variance,
         "key switch");
  expect(variance(noise_of(w, e.multiply_integer(a, 100))), 10000 * secret, "integer");
}

// Doubling a value exhausts the noise of its level sooner or later; a product of sums of very many
// takes a further level.
TEST(DiscreteNoise, AdviceIsTrueOfSums) {
  Case setup{"", Word::w52, 65537, 0, 0};
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 4);
    World w(setup);
    const Evaluator e = w.evaluator();
    Ciphertext a = w.encrypt_residues(Numbers(kN, 1));
    const auto refused = exhausted([&] {
      for (int i = 0; i < 60; ++i) {
        a = e.add(a, a);
        ASSERT_GT(e.noise_budget(a), 0);
      }
    });
    std::int64_t expected = 1;
    for (int i = 0; i < 60; ++i) expected = residue(Wide{expected} * 2, w.params->modulus());
    if (!refused) {
      EXPECT_EQ(w.decrypt(a), Numbers(kN, expected));
      EXPECT_GT(attempt, 0);
      break;
    }
    setup.depth = advised_depth(*refused);
  }
}

// A value with a large noise is brought down before it is multiplied: the product has about the
// budget that it has for a value that never had it.
TEST(DiscreteNoise, LevelsAreLeftWhereTheNoiseMakesThemUseless) {
  World w({"", Word::w52, 65537, 0, 4});
  const Evaluator e = w.evaluator();
  Ciphertext a = w.encrypt_residues(Numbers(kN, 3));
  for (int i = 0; i < 40; ++i) a = e.add(a, a);
  std::int64_t value = 3;
  for (int i = 0; i < 40; ++i) value = residue(Wide{value} * 2, w.params->modulus());
  const Ciphertext product = e.square(a);
  EXPECT_LT(product.level, 3);
  const std::int64_t square = residue(Wide{value} * value, w.params->modulus());
  EXPECT_EQ(w.decrypt(product), Numbers(kN, square));
  EXPECT_GT(e.noise_budget(product), e.noise_budget(e.square(e.drop_to(a, 1))));
  // A fresh value is not brought down.
  EXPECT_EQ(e.square(w.encrypt_residues(Numbers(kN, 3))).level, 3);
}

// The slots of the worst message add up to N / 2 at most, as the bound says, which is far more than
// a random message has.
TEST(DiscreteNoise, TheBoundHoldsForTheWorstMessage) {
  World w({"", Word::w52, 65537, 0, 3});
  const Evaluator e = w.evaluator();
  const PlainModulus& t = w.params->modulus();
  Numbers x = worst_message(w);
  Ciphertext a = w.encrypt_residues(x);
  const auto measured = w.decryptor.measure(a);
  EXPECT_GT(measured.slot, 0.6 * kN / 2) << "2 / pi of N / 2";
  EXPECT_LE(measured.slot, a.estimate.slot);
  EXPECT_LE(measured.coefficient, a.estimate.coefficient);
  // And of powers of one and the same value.
  for (int i = 0; i < 3; ++i) {
    a = e.square(a);
    expect_noise(w, a, 14, "power");
    for (auto& v : x) v = residue(Wide{v} * v, t);
    EXPECT_EQ(w.decrypt(a), x);
  }
}

// The budget is as honest as the bound: where it reaches 0, decryption is still right, and beyond
// by as many bits as the bound is above the noise, it is wrong. So the bound is neither too low nor
// by more bits too high.
TEST(DiscreteNoise, NoiseBeyondTheBudgetBecomesWrong) {
  JALI_SEEDED(rng);
  World w({"", Word::w52, 65537, 0, 1});
  const Evaluator e = w.evaluator();
  const PlainModulus& t = w.params->modulus();
  Numbers x = w.numbers(rng, t.low(), t.high());
  Ciphertext a = w.encrypt_residues(x);
  const auto fresh = w.decryptor.measure(a);
  const double slack = std::log2(a.estimate.largest() / fresh.coefficient);
  EXPECT_LT(slack, 4);
  int beyond = 0;
  bool wrong = false;
  for (int i = 0; i < 80 && !wrong; ++i) {
    // The sum of bodies, past the evaluator's refusal.
    const double budget = w.noise().budget(a.estimate, a.level);
    const bool right = w.decrypt(a, Check::no) == x;
    if (budget > 0) {
      EXPECT_TRUE(right) << i;
      EXPECT_EQ(w.decrypt(a), x);
    } else {
      EXPECT_THROW(w.decrypt(a), DepthExhausted);
      EXPECT_THROW(e.add(a, a), DepthExhausted);
      wrong = !right;
      if (right) ++beyond;
    }
    Ciphertext sum;
    sum.params = a.params;
    sum.factor = a.factor;
    sum.estimate = w.noise().add(a.estimate, a.estimate, kWrap);
    sum.body() = rlwe::Evaluator(w.params, w.ring, nullptr).add(a, a);
    a = std::move(sum);
    for (auto& v : x) v = residue(Wide{v} * 2, t);
  }
  EXPECT_TRUE(wrong);
  EXPECT_LE(beyond, static_cast<int>(slack) + 2);
}

}  // namespace
}  // namespace jali::discrete
