#include "jali/circuits/ckks/slot_sum.h"

#include "jali/schemes/ckks/composed.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

std::vector<Complex> clear(const std::vector<Complex>& x, std::size_t stride, std::size_t count) {
  std::vector<Complex> y(x.size(), 0.0);
  for (std::size_t s = 0; s < x.size(); ++s)
    for (std::size_t t = 0; t < count; ++t) y[s] += x[(s + t * stride) % x.size()];
  return y;
}

class SlotSums : public ::testing::TestWithParam<Scheme> {};

TEST_P(SlotSums, MatchClearSums) {
  const auto params = make_params(GetParam());
  const std::size_t slots = params->slots();
  struct Case {
    std::size_t stride, count;
  };
  for (const Case c : {Case{1, 1}, Case{1, 2}, Case{1, 16}, Case{16, 32}, Case{1, 7}, Case{3, 13},
                       Case{1, 32}, Case{5, 100}, Case{1, slots}}) {
    for (int radix : {0, 2, 4, 8}) {
      const SlotSum sum(params, c.stride, c.count, -1, -1, radix);
      World world(GetParam(), sum.rotations());
      const auto x = world.vector();
      const auto ciphertext = world.encrypt(x);
      const auto expected = clear(x, c.stride, c.count);
      const std::string what = GetParam().label + " stride " + std::to_string(c.stride) +
                               " count " + std::to_string(c.count) + " radix " +
                               std::to_string(radix);
      const auto y = sum.apply(*world.evaluator, ciphertext);
      EXPECT_EQ(y.level, ciphertext.level);
      EXPECT_EQ(y.scale, ciphertext.scale);
      expect_near(world, y, expected, what);
    }
  }
}

TEST_P(SlotSums, AreComposedOfTheKeysThatThereAre) {
  const auto params = make_params(GetParam());
  World world(GetParam(), rlwe::power_rotations(params->slots()));
  const auto x = world.vector();
  const auto ciphertext = world.encrypt(x);
  for (const std::size_t count : {7u, 32u}) {
    for (int radix : {2, 8}) {
      const auto y = SlotSum(params, 3, count, -1, -1, radix).apply(*world.evaluator, ciphertext);
      expect_near(world, y, clear(x, 3, count), GetParam().label);
    }
  }
}

TEST(SlotSum, RefusesClaimsThatAreNoSize) {
  const Scheme scheme{"claims", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  for (const std::size_t count : {1u, 8u}) {
    const SlotSum sum(params, 1, count);
    World world(scheme, sum.rotations());
    const auto x = world.encrypt(world.vector());
    for (const double bad : {-1.0, std::nan("")}) {
      EXPECT_THROW(sum.apply_rescale(*world.evaluator, x, bad), InvalidArgument) << bad;
    }
  }
}

TEST_P(SlotSums, RescaleOnTheWay) {
  const auto params = make_params(GetParam());
  for (std::size_t count : {1u, 8u}) {
    const SlotSum sum(params, 4, count, -1, 6);
    World world(GetParam(), sum.rotations());
    const auto x = world.vector(1, 64);
    const auto c = world.encrypt(x, -1, 6);
    const auto product = world.evaluator->multiply_scalar(c, 0.75, params->scale(c.level));
    const auto y = sum.apply_rescale(*world.evaluator, product);
    EXPECT_EQ(y.level, c.level - 1);
    auto expected = clear(x, 4, count);
    for (auto& e : expected) e *= 0.75;
    expect_near(world, y, expected, GetParam().label);
  }
}

INSTANTIATE_TEST_SUITE_P(Words, SlotSums, ::testing::ValuesIn(words(1)),
                         [](const auto& info) { return info.param.label; });

TEST(SlotSum, RadixTwoNeedsLogarithmicallyManyKeys) {
  const auto params = make_params({"keys", Word::w64, 45, 2, 12});
  const SlotSum sum(params, 1, 1024, -1, -1, 2);
  EXPECT_EQ(sum.rotations(), (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_LE(SlotSum(params, 1, 1024).cost(), sum.cost());
  EXPECT_TRUE(SlotSum(params, 1, 1).rotations().empty());
}

TEST(SlotSum, SaysWhatIsWrong) {
  const Scheme scheme{"errors", Word::w64, 45, 1, 10};
  const auto params = make_params(scheme);
  EXPECT_THROW(SlotSum(params, 1, 513), InvalidArgument);
  EXPECT_THROW(SlotSum(params, 4, 129), InvalidArgument);
  EXPECT_THROW(SlotSum(params, 0, 1), InvalidArgument);
  EXPECT_THROW(SlotSum(params, 1, 0), InvalidArgument);
  EXPECT_THROW(SlotSum(params, 1, 4, -1, -1, 3), InvalidArgument);
  World world(scheme, {1, 64});
  const auto c = world.encrypt(world.vector());
  try {
    SlotSum(params, 32, 16, -1, -1, 2).apply(*world.evaluator, c);
    FAIL() << "no KeyMissing";
  } catch (const KeyMissing& e) {
    // Those by multiples of 64 are composed; 32 would take 32 rotations by 1, more than
    // log2(slots).
    EXPECT_NE(std::string(e.what()).find("rotations 32,"), std::string::npos) << e.what();
  }
  EXPECT_THROW(SlotSum(params, 1, 2, -1, 5).apply(*world.evaluator, c), InvalidArgument);
}

}  // namespace
}  // namespace jali::circuits::testing
