// Tests several applications for one result, and two real vectors in one ciphertext.
#include "jali/params/ckks/bootstrap_request.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

using jali::testing::max_error;

ckks::ParamsPtr made(BootstrapOrder order, double precision, int iterations, Word word,
                     int log_n = 11) {
  auto request = small_request(order, word, precision, log_n);
  request.iterations = iterations;
  return params::create_with_bootstrap(request);
}

double predicted(World& world, const ckks::Ciphertext& y) {
  return world.evaluator->noise().precision_bits(y.estimate, y.scale);
}

// Two applications give nearly twice the bits of one, and three nearly three times. The bits are as
// many as were asked for and as the estimate says.
TEST(Iterated, MultipliesPrecision) {
  struct Try {
    BootstrapOrder order;
    int iterations;
    double precision;
    Word word;
    int log_slots;
    bool real;
  };
  for (const Try& t : {Try{BootstrapOrder::raise_first, 2, 35, Word::w52, 10, false},
                       Try{BootstrapOrder::raise_first, 2, 35, Word::w64, 5, false},
                       Try{BootstrapOrder::raise_first, 2, 38, Word::w64, 10, true},
                       Try{BootstrapOrder::raise_first, 3, 38, Word::w32, 9, false},
                       Try{BootstrapOrder::slots_first, 2, 35, Word::w52, 10, false},
                       Try{BootstrapOrder::slots_first, 2, 35, Word::w64, 10, true},
                       Try{BootstrapOrder::slots_first, 3, 38, Word::w64, 4, false}}) {
    World world(made(t.order, t.precision, t.iterations, t.word), {t.log_slots, t.real});
    const auto& params = *world.params;
    SCOPED_TRACE(std::to_string(t.iterations) + " iterations, order " +
                 std::to_string(static_cast<int>(t.order)) + ", slots 2^" +
                 std::to_string(t.log_slots) + ", seed " + std::to_string(world.seed));
    const int lowest = world.bootstrapper->plan().input_level();
    for (int level = lowest; level <= lowest + 1; ++level) {
      const auto v = world.vector(std::size_t{1} << t.log_slots, t.real);
      const auto x = world.encrypt(v, level);
      const auto once = world.bootstrapper->apply(x);
      const auto y = world.bootstrapper->apply(x, -1, {}, t.iterations);
      EXPECT_EQ(y.level, params.depth() - 1);
      EXPECT_EQ(y.level - lowest, 2);
      EXPECT_EQ(y.scale, params.scale(y.level));
      const double one = World::precision(world.decrypt(once), v);
      const double all = World::precision(world.decrypt(y), v);
      EXPECT_LT(one, t.precision * 0.75);
      EXPECT_GT(all, t.precision - (t.log_slots < 8 ? 2 : 0.5));  // the noise under one key
      EXPECT_NEAR(all, predicted(world, y), t.log_slots < 8 ? 5 : 2);
    }
  }
}

// One coefficient holds the whole message, so the sine's error is at its worst. The second
// application measures the error and removes it.
TEST(Iterated, MeasuresTheErrorOfTheSine) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    World world(made(order, 35, 2, Word::w64), {});
    const std::vector<Complex> v(world.params->slots(), 1.0);
    const auto x = world.encrypt(v, world.bootstrapper->plan().input_level(), 0, 1, 1.0);
    EXPECT_GT(max_error(world.decrypt(world.bootstrapper->apply(x)), v), 0x1p-22);
    const auto y = world.bootstrapper->apply(x, -1, {}, 2);
    EXPECT_GT(World::precision(world.decrypt(y), v), 34) << world.seed;
  }
}

TEST(Iterated, BatchesAndLevels) {
  World world(made(BootstrapOrder::raise_first, 30, 2, Word::w52), {6});
  const auto v = world.vector(3 * 64);
  const auto x = world.encrypt(v, 0, 0, 3);
  for (int target = 0; target < world.params->depth(); ++target) {
    const auto y = world.bootstrapper->apply(x, target, {}, 2);
    EXPECT_EQ(y.level, target);
    EXPECT_EQ(y.batch(), 3u);
    EXPECT_GT(World::precision(world.decrypt(y), v), 28) << world.seed;
  }
  const auto none = [](const char*) { FAIL() << "work before the check"; };
  EXPECT_THROW(world.bootstrapper->apply(x, world.params->depth(), none, 2), InvalidArgument);
  EXPECT_THROW(world.bootstrapper->apply(x, -1, none, 0), InvalidArgument);
  EXPECT_THROW(world.bootstrapper->apply(x, -1, none, 5), InvalidArgument);

  // These parameters have no level to spare.
  Case c{"no_level", Word::w64, 45, 3};
  c.bootstrap.order = BootstrapOrder::slots_first;
  c.bootstrap.cts_levels = c.bootstrap.stc_levels = 2;
  World tight(c, {4});
  const auto w = tight.vector(16);
  EXPECT_THROW(tight.bootstrapper->apply(tight.encrypt(w, 2), -1, none, 2), DepthExhausted);
}

// The scale holds hardly more bits than one application gives. The result is right all the same.
TEST(Iterated, IsRightWhereTheScaleHoldsNoMore) {
  World world(made(BootstrapOrder::raise_first, 24, 1, Word::w64), {});
  const auto v = world.vector(world.params->slots());
  const auto y = world.bootstrapper->apply(world.encrypt(v, 0), -1, {}, 2);
  EXPECT_NEAR(World::precision(world.decrypt(y), v), predicted(world, y), 1.5) << world.seed;
}

// With `real`, imaginary parts are dropped together with their noise in either order.
TEST(Real, ImaginaryPartsAreDropped) {
  World world(made(BootstrapOrder::raise_first, 20, 1, Word::w52), {10, /*real=*/true});
  const auto v = world.vector(world.params->slots());
  std::vector<Complex> expected;
  for (const auto& z : v) expected.emplace_back(z.real());
  const auto y = world.bootstrapper->apply(world.encrypt(v, 0));
  EXPECT_EQ(y.level, world.params->depth());
  const auto got = world.decrypt(y);
  EXPECT_LT(max_error(got, expected), 0x1p-16) << world.seed;
  for (const auto& z : got) ASSERT_LT(std::fabs(z.imag()), 0x1p-17);
}

TEST(Real, TwoVectorsTravelTogether) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const int log_slots : {10, 7, 1}) {
      for (const int iterations : {1, 2}) {
        const double precision = iterations == 1 ? 20 : 32;
        World world(made(order, precision, iterations, Word::w52), {log_slots});
        const std::size_t slots = std::size_t{1} << log_slots;
        const int level = world.bootstrapper->plan().input_level();
        auto a = world.vector(2 * slots, true), b = world.vector(2 * slots, true);
        auto x = world.encrypt(a, level, 0, 2);
        x.packing.length = 2;
        const auto [y, z] =
            world.bootstrapper->apply_pair(x, world.encrypt(b, level, 0, 2), -1, iterations);
        const int top = world.params->depth() - (iterations > 1 ? 1 : 0);
        for (const auto* out : {&y, &z}) {
          EXPECT_EQ(out->level, top);
          EXPECT_EQ(out->scale, world.params->scale(top));
          EXPECT_NEAR(out->estimate.message, jali::testing::kMagnitude, 1e-12);
          EXPECT_GT(
              predicted(world, *out),
              precision - 3.5);  // a claim for real normal numbers, whose errors are real, too
        }
        EXPECT_EQ(y.packing.length, 2u);
        EXPECT_EQ(z.packing.length, 0u);
        SCOPED_TRACE("slots 2^" + std::to_string(log_slots) + " seed " +
                     std::to_string(world.seed));
        const double slack = log_slots < 6 ? 4 : 1.5;
        EXPECT_GT(World::precision(world.decrypt(y), a), precision - slack);
        EXPECT_GT(World::precision(world.decrypt(z), b), precision - slack);
      }
    }
  }
}

TEST(Real, PairsAreChecked) {
  World world(made(BootstrapOrder::slots_first, 20, 1, Word::w52), {4});
  const int level = world.bootstrapper->plan().input_level();
  const auto v = world.vector(16, true);
  const auto x = world.encrypt(v, level);
  EXPECT_THROW(world.bootstrapper->apply_pair(x, world.encrypt(v, level + 1)), InvalidArgument);
  EXPECT_THROW(world.bootstrapper->apply_pair(x, world.encrypt(v, level, 0x1p30)), ScaleMismatch);
  EXPECT_THROW(world.bootstrapper->apply_pair(x, world.encrypt(v, level - 1)), DepthExhausted);
  World real(made(BootstrapOrder::slots_first, 20, 1, Word::w52), {4, /*real=*/true});
  const auto w = real.encrypt(v, level);
  EXPECT_THROW(real.bootstrapper->apply_pair(w, w), InvalidArgument);
}

}  // namespace
}  // namespace jali::bootstrap::testing
