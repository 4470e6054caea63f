// Tests the automatic evaluator on vectors whose length is known.
#include "jali/schemes/ckks/array_evaluator.h"

#include "fixture.h"

namespace jali::ckks {
namespace {

using jali::testing::Complex;
using jali::testing::max_error;
using jali::testing::Scheme;
using jali::testing::World;

class Arrays : public ::testing::TestWithParam<Scheme> {
 protected:
  World w{GetParam(), {1, 2, 4, 8}};
  const ArrayEvaluator e{w.evaluator};
  const double tolerance = std::exp2(18 - GetParam().scale_bits);

  /// A vector in the first slots, as a client would encrypt it.
  Ciphertext encrypt(const std::vector<Complex>& v, int log_slots, int level = -1) {
    auto padded = v;
    padded.resize(std::size_t{1} << log_slots);
    Ciphertext out = w.encrypt(padded, level, log_slots);
    out.packing = packing_of_fresh(v.size(), log_slots, false, true);
    return out;
  }
  void expect_shown(const Ciphertext& c, const std::vector<Complex>& expected) {
    auto got = w.decrypt(c);
    ASSERT_EQ(length_of(c), expected.size());
    got.resize(expected.size());
    EXPECT_LT(max_error(got, expected), tolerance) << "seed " << w.seed;
  }
};

TEST_P(Arrays, KnowWhatResultsShow) {
  const auto x = w.vector(1, 5), y = w.vector(1, 5);
  const auto a = encrypt(x, 4), b = encrypt(y, 4);
  std::vector<Complex> sum(5), difference(5), product(5), square(5), scaled(5), less(5);
  for (std::size_t j = 0; j < 5; ++j) {
    sum[j] = x[j] + y[j];
    difference[j] = x[j] - y[j];
    product[j] = x[j] * y[j];
    square[j] = x[j] * x[j];
    scaled[j] = 0.5 * x[j];
    less[j] = y[j] - x[j];
  }
  expect_shown(e.add(a, b), sum);
  expect_shown(e.sub(a, b), difference);
  expect_shown(e.normalise(e.multiply(a, b)), product);
  expect_shown(e.normalise(e.multiply(a, a)), square);
  expect_shown(e.normalise(e.multiply_scalar(a, 0.5)), scaled);
  const Numbers numbers{y, 1, false, true};
  expect_shown(e.add_numbers(a, numbers), sum);
  expect_shown(e.sub_numbers(a, numbers), difference);
  expect_shown(e.normalise(e.multiply_numbers(a, numbers)), product);
  expect_shown(e.add_numbers(e.negate(a), numbers), less);
  EXPECT_TRUE(e.normalise(e.multiply(a, b)).packing.rest == 0);
  EXPECT_THROW(e.add(a, encrypt(w.vector(1, 6), 4)), InvalidArgument);
}

TEST_P(Arrays, SumTheVectorWhereZerosFollowIt) {
  const auto x = w.vector(1, 5);
  const auto a = encrypt(x, 4);
  Complex total = 0;
  for (const auto& z : x) total += z;
  expect_shown(e.sum(a), std::vector<Complex>(5, total));
  EXPECT_THROW(e.sum(e.add_scalar(a, 1)), InvalidArgument);
  EXPECT_THROW(e.sum(e.rotate(a, 1)), InvalidArgument);
  EXPECT_THROW(e.sum(a, 32), InvalidArgument);
  expect_shown(e.sum(e.with_length(e.add_scalar(a, 1), 16), 16),
               std::vector<Complex>(16, total + 16.0));
}

TEST_P(Arrays, ShowAnotherLengthOrMagnitude) {
  const auto x = w.vector(1, 5);
  const auto a = encrypt(x, 4);
  expect_shown(e.with_length(a, 2), {x[0], x[1]});
  EXPECT_FALSE(e.with_length(a, 2).packing.rest == 0) << "the third number follows";
  EXPECT_TRUE(e.with_length(a, 6).packing.rest == 0);
  EXPECT_FALSE(e.with_length(a, 16).packing.rest == 0);
  EXPECT_THROW(e.with_length(a, 0), InvalidArgument);
  EXPECT_THROW(e.with_length(a, 17), InvalidArgument);
  EXPECT_THROW(e.with_magnitude(e.rotate(a, 1), {0.25, 0.5}), InvalidArgument)
      << "the first number lies in the last slot";
  const auto more = e.add_scalar(a, 0.25);
  EXPECT_EQ(more.packing.rest, 0.25);
  EXPECT_EQ(e.multiply(more, more).packing.rest, 0.0625);
  EXPECT_EQ(e.multiply_scalar(e.add(more, more), -2.0).packing.rest, 1);
  EXPECT_EQ(e.with_magnitude(more, {0.25, 0.5}).estimate.peak, 0.5);
  EXPECT_THROW(e.with_magnitude(more, {0.1, 0.2}), InvalidArgument);
  const auto declared = e.with_magnitude(a, {0.25, 0.5});
  EXPECT_EQ(declared.estimate.message, 0.25);
  EXPECT_EQ(declared.estimate.peak, 0.5);
  EXPECT_EQ(declared.packing.length, 5u);
  EXPECT_THROW(e.with_magnitude(a, {std::nan(""), 1}), InvalidArgument);
  EXPECT_THROW(e.with_magnitude(a, {1, INFINITY}), InvalidArgument);
  EXPECT_THROW(e.with_magnitude(a, {-1, 1}), InvalidArgument);
}

TEST_P(Arrays, OweOrAreSettled) {
  const auto a = encrypt(w.vector(1, 5), 4);
  EXPECT_TRUE(e.is_settled(a));
  const auto product = e.multiply(a, a);
  EXPECT_FALSE(e.is_settled(product));
  EXPECT_TRUE(e.is_settled(e.normalise(product)));
}

TEST_P(Arrays, RefuseFactorsThatWouldWrapAround) {
  const auto a = encrypt(w.vector(1, 5), 4);
  EXPECT_THROW(e.multiply_scalar(a, 1e90), InvalidArgument);
  const std::vector<Complex> large(5, 1e90);
  EXPECT_THROW(e.multiply_numbers(a, Numbers{large}), InvalidArgument);
}

// Level 0 holds numbers below 2^(integer_bits - 1), to within a quarter of a bit. A larger constant
// is refused when it is added, before any product is computed. Constants that are not refused give
// right results.
TEST_P(Arrays, RefuseConstantsThatTheLevelDoesNotHold) {
  const auto x = w.vector(1, 5);
  const auto a = std::make_shared<const Ciphertext>(encrypt(x, 4, 1));
  const auto b = std::make_shared<const Ciphertext>(encrypt(x, 4));
  const double most = std::exp2(w.params->literal().integer_bits - 1);
  ASSERT_LT(1.4 * most, ArrayEvaluator::kMostConstant);
  const auto products = e.product(a, a), above = e.product(b, b);
  for (const Complex large : {Complex{1.4 * most}, Complex{0, -1.4 * most}}) {
    EXPECT_THROW(e.join_scalar(products, large), InvalidArgument);
    EXPECT_TRUE(e.join_scalar(above, large)) << "a higher level holds it";
    // Two constants that are too large together are refused too, added one by one or with two sums.
    const auto half = e.join_scalar(products, 0.55 * large);
    ASSERT_TRUE(half);
    EXPECT_THROW(e.join_scalar(*half, 0.55 * large), InvalidArgument);
    EXPECT_THROW(e.join(*half, *half), RangeExceeded);
    EXPECT_TRUE(e.join_scalar(*half, -large)) << "the sum counts, not its terms";
  }
  for (const Complex fits : {Complex{0.7 * most}, Complex{0, -0.7 * most}}) {
    const auto sum = e.join_scalar(products, fits);
    ASSERT_TRUE(sum);
    const auto got = w.decrypt(e.settle(*sum));
    for (std::size_t j = 0; j < x.size(); ++j) {
      EXPECT_LT(std::abs(got[j] - (x[j] * x[j] + fits)), most * tolerance) << w.seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Words, Arrays,
                         ::testing::Values(Scheme{"w32_28", Word::w32, 28},
                                           Scheme{"w52_40", Word::w52, 40},
                                           Scheme{"w64_50", Word::w64, 50}),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::ckks
