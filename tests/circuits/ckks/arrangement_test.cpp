// Vectors that are brought from one layout into another keep their numbers, at the cost that was
// told before.
#include "jali/circuits/ckks/arrangement.h"

#include <bit>

#include "../../seeded.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

const Scheme kScheme{"w52", Word::w52, 40, 3};

/// `count` numbers in a random tiling of the slots.
ckks::Packing lying(std::mt19937_64& random, std::size_t count, std::size_t slots) {
  const auto power = [&](std::size_t most) {
    return std::size_t{1} << std::uniform_int_distribution<int>(
               0, static_cast<int>(std::bit_width(most)) - 1)(random);
  };
  for (;;) {
    const std::size_t stride = power(slots), window = power(stride), times = power(slots / stride);
    if (window * times < count) continue;
    ckks::Packing out =
        ckks::packing_of_tiling(count, ckks::tiling_of(0, window, stride, times, slots), slots);
    if (random() % 2 == 0) out.rest = params::kUnbounded;
    return out;
  }
}

TEST(Arrangements, KeepTheNumbers) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  const auto params = make_params(kScheme);
  const int log_slots = params->log_n() - 1;
  const std::size_t slots = params->slots();
  int windows = 0;
  for (int k = 0; k < 24; ++k) {
    const std::size_t count = 1 + random() % 40;
    const ckks::Packing from = lying(random, count, slots), to = lying(random, count, slots);
    const bool with_zeros = random() % 2 == 0;
    windows += !ckks::is_in_order(from) || !ckks::is_in_order(to);
    const Arrangement steps(from, to, log_slots, with_zeros);
    const std::string what = ckks::described(from, log_slots) + " to " +
                             ckks::described(to, log_slots) + ", seed " + std::to_string(seed);
    World world(kScheme, steps.rotations());
    auto numbers = world.vector(1, count);
    auto values = ckks::to_slots(numbers, 1, from, slots);
    const auto before = ckks::numbers_in_slots(from, slots);
    for (std::size_t s = 0; s < slots; ++s) {
      if (before[s] == ckks::kNoNumber && from.rest != 0) values[s] = {0.5, -0.5};
    }
    auto x = world.encrypt(values, -1, -1, 1, params::Declared{1, 2});
    x.packing = from;
    const auto y = steps.apply(*world.evaluator, x);
    EXPECT_EQ(y.level, x.level - steps.levels()) << what;
    EXPECT_LE(steps.levels(), 3) << what;
    EXPECT_LE(y.estimate.peak, 2) << what;
    EXPECT_EQ(y.packing.tiling, to.tiling) << what;
    EXPECT_EQ(y.packing.length, to.length) << what;
    if (with_zeros) {
      EXPECT_TRUE(ckks::rest_is_zero(y.packing)) << what;
    }
    const auto got = world.decrypt(y);
    const auto held = ckks::numbers_in_slots(to, slots);
    const double error = ckks::worst_case_error(y);
    EXPECT_LT(error, 1e-3) << what;
    for (std::size_t s = 0; s < slots; ++s) {
      if (held[s] != ckks::kNoNumber) {
        ASSERT_LE(std::abs(got[s] - numbers[held[s]]), error) << what << ", slot " << s;
      } else if (y.packing.rest == 0) {
        ASSERT_LE(std::abs(got[s]), error) << what << ", slot " << s;
      }
    }
  }
  EXPECT_GT(windows, 0) << seed;
}

TEST(Arrangements, TellTheirCost) {
  constexpr int kLogSlots = 9;
  constexpr std::size_t kSlots = 512;
  const auto every = [&](std::size_t window, bool zeros) {
    ckks::Packing out =
        ckks::packing_of_tiling(20, ckks::tiling_of(0, window, window, 1, kSlots), kSlots);
    if (!zeros) out.rest = params::kUnbounded;
    return out;
  };
  const ckks::Packing natural = every(kSlots, true), filled = every(kSlots, false);
  EXPECT_EQ(Arrangement(natural, natural, kLogSlots, true).levels(), 0);
  EXPECT_TRUE(Arrangement(natural, natural, kLogSlots, true).rotations().empty());
  const Arrangement repeated(natural, every(32, true), kLogSlots, false);
  EXPECT_EQ(repeated.levels(), 0);
  EXPECT_EQ(repeated.rotations(), (std::vector<int>{-128, -64, -32, 256}));
  EXPECT_EQ(Arrangement(filled, every(32, true), kLogSlots, false).levels(), 1);
  EXPECT_EQ(Arrangement(every(32, false), natural, kLogSlots, true).levels(), 1);
  EXPECT_TRUE(Arrangement(every(32, false), natural, kLogSlots, true).rotations().empty());
  EXPECT_EQ(Arrangement(filled, natural, kLogSlots, true).levels(), 1);
  EXPECT_EQ(Arrangement(filled, natural, kLogSlots, false).levels(), 0);
  const ckks::Packing windows =
      ckks::packing_of_tiling(20, ckks::tiling_of(0, 8, 64, 4, kSlots), kSlots);
  EXPECT_EQ(Arrangement(natural, windows, kLogSlots, false).levels(), 1);
  EXPECT_EQ(Arrangement(windows, natural, kLogSlots, false).levels(), 1);
  EXPECT_EQ(Arrangement(windows, natural, kLogSlots, false).rotations(),
            (std::vector<int>{56, 112}));
  EXPECT_THROW(
      Arrangement(ckks::packing_of_fresh(19, kLogSlots, false, false), natural, kLogSlots, false),
      InvalidArgument);
  World world(kScheme, {});
  auto x = world.encrypt(world.vector(), 0);
  x.packing = filled;
  EXPECT_THROW(Arrangement(filled, natural, kLogSlots, true).apply(*world.evaluator, x),
               DepthExhausted);
}

TEST(Arrangement, RefusesArraysOfAnyShape) {
  ckks::Packing vector, array;
  array.batched = true;
  array.rest = 0;
  array.view = ckks::View{{{2, 4}, {3, 1}}, 0, 0};
  EXPECT_THROW(Arrangement(vector, array, 4, false), InvalidArgument);
  EXPECT_THROW(Arrangement(array, vector, 4, true), InvalidArgument);
}

}  // namespace
}  // namespace jali::circuits::testing
