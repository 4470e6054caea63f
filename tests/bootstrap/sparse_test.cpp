// Ciphertexts of all slots whose numbers repeat, bootstrapped with fewer slots.
#include <algorithm>

#include "jali/bootstrap/packings.h"
#include "jali/schemes/ckks/packing.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

constexpr std::size_t kSlots = 512;
constexpr int kLogSlots = 9;

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    const std::string o = order == BootstrapOrder::raise_first ? "raise" : "slots";
    out.push_back({o + "_w52", Word::w52, 45, 4, precise(order, 2, 2)});
    out.push_back({o + "_w32", Word::w32, 50, 4, precise(order, 3, 2, 50)});
  }
  return out;
}

/// The numbers over and over, in all slots.
std::vector<Complex> repeated(const std::vector<Complex>& v) {
  std::vector<Complex> out(kSlots);
  for (std::size_t s = 0; s < kSlots; ++s) out[s] = v[s % v.size()];
  return out;
}

/// Numbers of which those that lie `period` slots apart have the mean 0, of modulus up to 1/2.
std::vector<Complex> balanced(World& world, std::size_t period) {
  auto out = world.vector(kSlots);
  std::vector<Complex> mean(period);
  for (std::size_t s = 0; s < kSlots; ++s) {
    mean[s % period] += out[s] * (static_cast<double>(period) / kSlots);
  }
  for (std::size_t s = 0; s < kSlots; ++s) out[s] = 0.2 * (out[s] - mean[s % period]);
  return out;
}

std::vector<Complex> sum(std::vector<Complex> a, const std::vector<Complex>& b) {
  for (std::size_t s = 0; s < a.size(); ++s) a[s] += b[s];
  return a;
}

/// A ciphertext of all slots. Few numbers that repeat may lie above their kind's root mean square.
ckks::Ciphertext full(World& world, const std::vector<Complex>& v, int level) {
  const double scale = world.params->scale(level);
  params::Declared declared = jali::testing::kMagnitude;
  declared.calibrated = true;
  return world.encryptor->encrypt(world.evaluator->encoder().encode(v, 1, level, scale, kLogSlots),
                                  declared);
}

/// Expects the numbers in all slots, as precise as predicted; with many of them, not much more
/// precise either.
void expect_near(World& world, const ckks::Ciphertext& y, const std::vector<Complex>& v,
                 std::size_t period) {
  EXPECT_EQ(y.log_slots, kLogSlots);
  const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
  const double measured = World::precision(world.decrypt(y), v);
  const bool many = period >= 128;
  EXPECT_GT(measured, predicted - (many ? 1 : 3)) << "seed " << world.seed;
  EXPECT_LT(measured, predicted + (many ? 4.5 : 9.5)) << "seed " << world.seed;
  EXPECT_GT(predicted, 24);
}

class RepeatingNumbers : public ::testing::TestWithParam<Case> {};

TEST_P(RepeatingNumbers, AreBootstrappedWithTheirPeriodOfSlots) {
  for (const int log_slots : {8, 7, 4, 1}) {
    SCOPED_TRACE("slots 2^" + std::to_string(log_slots));
    const std::size_t period = std::size_t{1} << log_slots;
    World world(GetParam(), {log_slots});
    const auto& params = *world.params;
    const int lowest = world.bootstrapper->plan().input_level();
    for (const int level : {lowest, params.depth()}) {
      const auto v = repeated(world.vector(period));
      auto y = world.bootstrapper->apply(full(world, v, level));
      EXPECT_EQ(y.level, params.depth());
      expect_near(world, y, v, period);
      // The result passes for a value of all slots: others may be added.
      const auto w = world.vector(kSlots);
      y = world.evaluator->add(y, full(world, w, params.depth()));
      EXPECT_GT(World::precision(world.decrypt(y), sum(v, w)), 22);
    }
  }
}

// What does not repeat is removed, however large it is: a wrong claim gives means, nothing worse.
TEST_P(RepeatingNumbers, AreTheMeansIfTheyDoNotRepeat) {
  for (const int log_slots : {8, 5}) {
    const std::size_t period = std::size_t{1} << log_slots;
    World world(GetParam(), {log_slots});
    const int lowest = world.bootstrapper->plan().input_level();
    const auto v = repeated(world.vector(period));
    const auto x = full(world, sum(v, balanced(world, period)), lowest);
    expect_near(world, world.bootstrapper->apply(x), v, period);
    const auto twice = world.bootstrapper->apply(x, -1, {}, /*iterations=*/2);
    EXPECT_GT(World::precision(world.decrypt(twice), v), 24);
  }
}

TEST_P(RepeatingNumbers, AreBootstrappedInPairs) {
  World world(GetParam(), {7});
  const int lowest = world.bootstrapper->plan().input_level();
  const auto v = repeated(world.vector(128, /*real=*/true));
  const auto w = repeated(world.vector(128, true));
  const auto [x, y] = world.bootstrapper->apply_pair(full(world, v, lowest), full(world, w, lowest),
                                                     world.params->depth() - 1);
  EXPECT_EQ(x.level, world.params->depth() - 1);
  expect_near(world, x, v, 128);
  expect_near(world, y, w, 128);
}

// A ciphertext of few slots is one of more slots whose numbers repeat.
TEST_P(RepeatingNumbers, AreThoseOfFewSlotsInMore) {
  for (const int log_slots : {kLogSlots, 6}) {
    World world(GetParam(), {log_slots});
    const auto& params = *world.params;
    const Packings packings(world.evaluator);
    const int lowest = world.bootstrapper->plan().input_level();
    for (const int few : {5, 1, 0}) {
      SCOPED_TRACE("2^" + std::to_string(few) + " slots in 2^" + std::to_string(log_slots));
      const auto fresh = [&](const std::vector<Complex>& v) {
        const double scale = params.scale(lowest);
        return world.encryptor->encrypt(world.evaluator->encoder().encode(v, 1, lowest, scale, few),
                                        jali::testing::kMagnitude);
      };
      const auto near = [&](const ckks::Ciphertext& y, const std::vector<Complex>& v) {
        EXPECT_EQ(y.log_slots, few);
        const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
        EXPECT_GT(predicted, 24);
        EXPECT_GT(World::precision(world.decrypt(y), v), predicted - 3) << world.seed;
      };
      const auto v = world.vector(std::size_t{1} << few);
      const auto x = fresh(v);
      near(world.bootstrapper->apply(x), v);
      near(world.bootstrapper->apply(x, -1, {}, /*iterations=*/2), v);
      const auto a = world.vector(v.size(), true), b = world.vector(v.size(), true);
      const auto [y, z] = world.bootstrapper->apply_pair(fresh(a), fresh(b));
      near(y, a), near(z, b);
      if (few == 0) continue;
      near(packings.apply(x, lowest + 1, 1, /*real=*/false), v);
      near(packings.apply(fresh(a), -1, 1, /*real=*/true), a);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RepeatingNumbers, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

TEST(RepeatingNumbers, AreThePackingsToCheck) {
  World world(cases()[0], {4});
  const Packings packings(world.evaluator);
  const int lowest = world.bootstrapper->plan().input_level();
  const auto v = repeated(world.vector(16, /*real=*/true));
  auto x = full(world, v, lowest);
  EXPECT_THROW(packings.apply(x), KeyMissing) << "the keys are those for 16 slots";
  const auto boot = [&] { return packings.apply(x, -1, 1, false, 4); };
  expect_near(world, boot(), v, 16);
  expect_near(world, packings.apply_pair(x, x, -1, 1, 4).second, v, 16);

  // Packings that say how the numbers lie are believed; one that says nothing leaves it to the
  // caller.
  x.packing = ckks::packing_of_tiling(10, {0, 16, 16, 1}, kSlots);
  EXPECT_EQ(boot().packing, x.packing);
  x.packing = ckks::packing_of_tiling(10, {0, 32, 32, 1}, kSlots);
  EXPECT_THROW(boot(), InvalidArgument) << "they repeat after 32 slots only";
  x.packing = ckks::packing_of_fresh(10, kLogSlots, false, false);
  EXPECT_THROW(boot(), InvalidArgument) << "they do not repeat";
  EXPECT_THROW(packings.apply_pair(x, x, -1, 1, 4), InvalidArgument);
  x.packing = {};
  x.packing.batched = true;
  x.packing.view = ckks::View{{{4, 2}}, 0, 16};
  EXPECT_EQ(boot().packing, x.packing);
  for (const std::uint32_t period : {0u, 32u}) {
    x.packing.view->period = period;
    EXPECT_THROW(boot(), InvalidArgument);
  }
}

TEST(RepeatingNumbers, AreNotFewerThanTheValueS) {
  World world(cases()[0], {5});
  const int lowest = world.bootstrapper->plan().input_level();
  const auto v = world.vector(16, /*real=*/true);
  const double scale = world.params->scale(lowest);
  const auto few = world.encryptor->encrypt(
      world.evaluator->encoder().encode(v, 1, lowest, scale, 4), jali::testing::kMagnitude);
  const Packings packings(world.evaluator);
  EXPECT_THROW(packings.apply(few, -1, 1, {}, 5), InvalidArgument);
  const auto some = world.encrypt(world.vector(32, true), lowest);
  EXPECT_THROW(world.bootstrapper->apply_pair(some, full(world, repeated(v), lowest)),
               InvalidArgument);
}

}  // namespace
}  // namespace jali::bootstrap::testing
