// Every operation against integer arithmetic, at every level, in every word and engine, and its
// noise from both sides.
#include <cmath>

#include "world.h"

namespace jali::discrete {
namespace {

/// By how many bits the bound on the slots of the noise may be above the largest slot. A bound on a
/// source of noise is about 10.6 standard deviations, and the largest of N = 1,024 is about 2.6, so
/// that 2 bits are lost; twice that for a product of two random polynomials, such as the rounding
/// of a division with the secret. The message's part is N / 2 for the worst message, and about
/// sqrt(N / 12) times 2.6 for a random one: 4.4 bits at N = 1,024. A product has the sum of its
/// factors'.
constexpr double kFresh = 7, kRounded = 6, kProduct = 13;

class DiscreteSlots : public ::testing::TestWithParam<Case> {
 protected:
  World w{GetParam()};
  const Params& params() const { return *w.params; }
  /// The largest b such that sums of two products of numbers from -b to b fit T.
  std::int64_t small() const {
    return static_cast<std::int64_t>(std::sqrt(params().modulus().as_double() / 8));
  }
};

TEST_P(DiscreteSlots, EncryptionIsReadBackAtEveryLevel) {
  JALI_SEEDED(rng);
  for (int level = 0; level <= params().top(); ++level) {
    const std::int64_t low = params().modulus().low(), high = params().modulus().high();
    const Numbers x = w.numbers(rng, low, high);
    const auto plaintext = w.encoder().encode(x, 1, w.noise().range(low, high));
    const Ciphertext a = w.encryptor.encrypt(plaintext, level);
    const Ciphertext b = w.secret_encryptor.encrypt(plaintext, level);
    EXPECT_EQ(w.decrypt(a), x);
    EXPECT_EQ(w.decrypt(b), x);
    EXPECT_EQ(a.level, level);
    EXPECT_TRUE(b.seed.has_value());
    expect_noise(w, a, kFresh, "public");
    expect_noise(w, b, kFresh, "secret");
  }
}

TEST_P(DiscreteSlots, SumsAtEveryLevel) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t b = small();
  for (int level = 0; level <= params().top(); ++level) {
    const Numbers x = w.numbers(rng, -b, b), y = w.numbers(rng, 0, b);
    const Ciphertext cx = w.encrypt(x, -b, b, level), cy = w.encrypt(y, 0, b, level);
    const auto py = w.encoder().encode_clear(y, 1);
    const auto check = [&](const Ciphertext& result, const Numbers& expected, const char* what) {
      EXPECT_EQ(w.decrypt(result), expected) << what;
      EXPECT_EQ(result.level, level) << what;
      expect_noise(w, result, kFresh + 1, what);
    };
    check(e.add(cx, cy), plus(x, y), "add");
    check(e.sub(cx, cy), minus(x, y), "sub");
    check(e.negate(cx), times(x, {-1}), "negate");
    check(e.add_plain(cx, py), plus(x, y), "add_plain");
    check(e.sub_plain(cx, py), minus(x, y), "sub_plain");
    check(e.add_integer(cx, -b), plus(x, {-b}), "add_integer");
    check(e.multiply_integer(cx, 3), times(x, {3}), "multiply_integer");
    check(e.multiply_integer(cx, -2), times(x, {-2}), "multiply_integer");
    check(e.add(cx, cx), times(x, {2}), "twice");
    EXPECT_EQ(e.add(cx, cy).estimate.range, (Range{-b, 2 * b, false}));
    EXPECT_EQ(e.sub(cx, cy).estimate.range, (Range{-2 * b, b, false}));
    EXPECT_EQ(w.decrypt(e.multiply_integer(cx, 0)), times(x, {0}));
  }
}

TEST_P(DiscreteSlots, ProductsAtEveryLevel) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t b = small();
  const bool bfv = params().multiplication() == Multiplication::bfv;
  for (int level = bfv ? 0 : 1; level <= params().top(); ++level) {
    const Numbers x = w.numbers(rng, -b, b), y = w.numbers(rng, -b, b);
    const Ciphertext cx = w.encrypt(x, -b, b, level), cy = w.encrypt(y, -b, b, level);
    if (bfv && level == 0) continue;  // level 0 has no room for a product
    const Ciphertext product = e.multiply(cx, cy), square = e.square(cx);
    EXPECT_EQ(w.decrypt(product), times(x, y));
    EXPECT_EQ(w.decrypt(square), times(x, x));
    EXPECT_EQ(product.level, bfv ? level : level - 1);
    EXPECT_EQ(product.factor, params().factor(product.level));
    EXPECT_EQ(square.estimate.range, (Range{0, b * b, false}));
    expect_noise(w, product, kProduct, "product");
    expect_noise(w, square, kProduct, "square");
    const std::pair<const Ciphertext*, const Ciphertext*> pairs[] = {{&cx, &cy}, {&cx, &cx}};
    EXPECT_EQ(w.decrypt(e.sum_of_products(pairs)), plus(times(x, y), times(x, x)));
  }
}

TEST_P(DiscreteSlots, PlaintextProductsAtEveryLevel) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t b = small();
  for (int level = 1; level <= params().top(); ++level) {
    const Numbers x = w.numbers(rng, -b, b), y = w.numbers(rng, 0, b);
    const Ciphertext cx = w.encrypt(x, -b, b, level);
    const Ciphertext product = e.multiply_plain(cx, w.encoder().encode_clear(y, 1));
    EXPECT_EQ(w.decrypt(product), times(x, y));
    expect_noise(w, product, kProduct, "plaintext product");
    // The factor that is pending is that of the next level once it is reached.
    const Ciphertext lower = e.drop_to(product, product.level - 1);
    EXPECT_EQ(w.decrypt(lower), times(x, y));
    EXPECT_EQ(lower.factor, params().factor(lower.level));
  }
}

TEST_P(DiscreteSlots, RotationsTurnEachRow) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator({1, -3, 100});
  const std::int64_t b = params().modulus().high();
  for (int level = 0; level <= params().top(); ++level) {
    const Numbers x = w.numbers(rng, -b, b);
    const Ciphertext cx = w.encrypt(x, -b, b, level);
    const Hoisted hoisted = e.hoist(cx);
    for (const int steps : {0, 1, -3, 100, 1 + static_cast<int>(kN / 2)}) {
      EXPECT_EQ(w.decrypt(e.rotate(cx, steps)), rotated(x, steps)) << steps;
      EXPECT_EQ(w.decrypt(e.rotate_hoisted(hoisted, steps)), rotated(x, steps)) << steps;
      EXPECT_EQ(w.decrypt(e.reduce(e.rotate_extended(hoisted, steps))), rotated(x, steps));
      expect_noise(w, e.rotate(cx, steps), kRounded + 2, "rotation");
    }
    EXPECT_EQ(w.decrypt(e.swap_rows(cx)), swapped(x));
    EXPECT_THROW(e.rotate(cx, 2), KeyMissing);
  }
}

TEST_P(DiscreteSlots, DropsToEveryLevel) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t b = params().modulus().high();
  const Numbers x = w.numbers(rng, -b, b);
  const Ciphertext cx = w.encrypt(x, -b, b);
  for (int level = 0; level < params().top(); ++level) {
    const Ciphertext low = e.drop_to(cx, level);
    EXPECT_EQ(w.decrypt(low), x);
    EXPECT_EQ(low.level, level);
    EXPECT_EQ(low.factor, params().factor(level));
    expect_noise(w, low, kRounded + 2, "drop_to");
    const Ciphertext divided = e.rescale(e.drop_to(cx, level + 1));
    EXPECT_EQ(w.decrypt(divided), x) << "with whatever factor";
  }
}

// Operands of different levels, and of different factors at one level.
TEST_P(DiscreteSlots, OperandsAreBroughtTogether) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  const std::int64_t b = small() / 4;
  const Numbers x = w.numbers(rng, -b, b), y = w.numbers(rng, -b, b);
  const Ciphertext cx = w.encrypt(x, -b, b), cy = w.encrypt(y, -b, b);
  const Ciphertext xy = e.multiply(cx, cy);
  EXPECT_EQ(w.decrypt(e.add(xy, cx)), plus(times(x, y), x));
  EXPECT_EQ(w.decrypt(e.sub(cx, xy)), minus(x, times(x, y)));
  const auto plain = w.encoder().encode_clear(y, 1);
  const Ciphertext pending = e.multiply_plain(cx, plain);
  const Ciphertext sum = e.add(pending, cx);
  EXPECT_EQ(w.decrypt(sum), plus(times(x, y), x));
  EXPECT_EQ(w.decrypt(e.sub(cx, pending)), minus(x, times(x, y)));
  EXPECT_EQ(w.decrypt(e.add_plain(pending, plain)), plus(times(x, y), y));
  EXPECT_EQ(w.decrypt(e.add_integer(pending, 5)), plus(times(x, y), {5}));
  EXPECT_EQ(w.decrypt(e.add(pending, xy)), times(times(x, y), {2}));
  if (params().depth() >= 2) {
    EXPECT_EQ(w.decrypt(e.multiply(e.drop_to(cx, 1), cy)), times(x, y));
    const Ciphertext zero = e.multiply(e.sub(xy, xy), xy, Overflow::wrap);
    EXPECT_EQ(w.decrypt(zero), times(x, {0}));
    EXPECT_EQ(w.decrypt(e.multiply(e.rescale(cx), e.drop_to(cy, params().top() - 1))), times(x, y));
  }
}

TEST_P(DiscreteSlots, BatchesAreVectorByVector) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator({1});
  const std::int64_t b = small();
  const Numbers x = w.numbers(rng, -b, b, 3 * kN), y = w.numbers(rng, -b, b, 3 * kN);
  const Numbers one = w.numbers(rng, 0, b);
  const Ciphertext cx = w.encrypt(x, -b, b, -1, 3), cy = w.encrypt(y, -b, b, -1, 3);
  EXPECT_EQ(w.decrypt(cx), x);
  EXPECT_EQ(w.decrypt(e.multiply(cx, cy)), times(x, y));
  EXPECT_EQ(w.decrypt(e.add(cx, w.encrypt(one, 0, b))), plus(x, one));
  EXPECT_EQ(w.decrypt(e.multiply_plain(cx, w.encoder().encode_clear(one, 1))), times(x, one));
  EXPECT_EQ(w.decrypt(e.rotate(cx, 1)), rotated(x, 1));
  EXPECT_EQ(w.decrypt(e.vectors(cx, 1, 2)), Numbers(x.begin() + kN, x.end()));
  const Ciphertext both = e.stack(e.vectors(cx, 2, 1), w.encrypt(one, 0, b));
  Numbers expected(x.begin() + 2 * kN, x.end());
  expected.insert(expected.end(), one.begin(), one.end());
  EXPECT_EQ(w.decrypt(both), expected);
  EXPECT_THROW(e.multiply(cx, w.encrypt(one, 0, b)), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteSlots, ::testing::ValuesIn(slot_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::discrete
