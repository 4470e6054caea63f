// Bootstrapping of ciphertexts of any packing. The bootstrapper of a packing is made once, for the
// keys that exist.
#include "jali/bootstrap/packings.h"

#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

#include "jali/bootstrap/key_sets.h"
#include "jali/params/ckks/bootstrap_request.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

Case quick(BootstrapOrder order) { return {"w64", Word::w64, 45, 3, precise(order, 3, 2)}; }

void expect_near(World& world, const ckks::Ciphertext& y, const std::vector<Complex>& v) {
  const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
  EXPECT_GT(World::precision(world.decrypt(y), v), predicted - 1) << world.seed;
}

TEST(Packings, AreMadeAtTheirFirstUse) {
  World world(quick(BootstrapOrder::raise_first), {9});
  const Packings packings(world.evaluator);
  int told = 0;
  packings.prepare(9, false, [&](std::size_t, std::size_t) { ++told; });
  EXPECT_GT(told, 0);
  const int first = told;
  packings.prepare(9, false, [&](std::size_t, std::size_t) { ++told; });
  EXPECT_EQ(told, first) << "it was made already";
  const int lowest = world.bootstrapper->plan().input_level(), depth = world.params->depth();
  const auto v = world.vector(512);
  const auto x = world.encrypt(v, lowest);
  for (const int target : {-1, depth, lowest}) {
    const auto y = packings.apply(x, target);
    EXPECT_EQ(y.level, target < 0 ? depth : target);
    expect_near(world, y, v);
  }
}

TEST(Packings, DropImaginaryPartsIfThatCostsLess) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    World world(quick(order), {9});
    const Packings packings(world.evaluator);
    const int lowest = world.bootstrapper->plan().input_level();
    const auto v = world.vector(512), parts = [&] {
      auto out = v;
      for (auto& z : out) z = z.real();
      return out;
    }();
    auto x = world.encrypt(v, lowest);
    const bool dropped = order == BootstrapOrder::slots_first;
    expect_near(world, packings.apply(x), dropped ? parts : v);
    expect_near(world, packings.apply(x, -1, 1, true), parts);
    x.packing.complex_values = true;
    expect_near(world, packings.apply(x), v);
    EXPECT_THROW(packings.apply_pair(x, x), InvalidArgument);
  }
}

TEST(Packings, TakeTwoRealVectorsAtOnce) {
  World world(quick(BootstrapOrder::raise_first), {9});
  const Packings packings(world.evaluator);
  const int lowest = world.bootstrapper->plan().input_level();
  const auto v = world.vector(512, /*real=*/true), w = world.vector(512, true);
  const auto [x, y] =
      packings.apply_pair(world.encrypt(v, lowest), world.encrypt(w, lowest), lowest);
  EXPECT_EQ(x.level, lowest);
  expect_near(world, x, v);
  expect_near(world, y, w);
}

TEST(Packings, UseTheFewestKeysIfThereAreNoOthers) {
  BootstrapperOptions fewest{9};
  fewest.minimum = true;
  World world(quick(BootstrapOrder::raise_first), fewest);
  const Packings packings(world.evaluator);
  const auto v = world.vector(512);
  expect_near(world, packings.apply(world.encrypt(v, world.bootstrapper->plan().input_level())), v);
  // The error is the same at every try if there are no keys.
  const auto none = std::make_shared<rlwe::EvaluationKeys>();
  none->params = world.params;
  const Packings without(std::make_shared<const ckks::Evaluator>(world.params, world.ring, none));
  EXPECT_THROW(without.prepare(9, false), KeyMissing);
  EXPECT_THROW(without.prepare(9, false), KeyMissing) << "nothing was kept of the first";
  EXPECT_THROW(without.prepare(-7, false), KeyMissing) << "a negative number stands for all slots";
}

TEST(Packings, UseTheKeysForMoreSlotsIfThereAreNoOthers) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const bool minimum : {false, true}) {
      BootstrapperOptions options{9};
      options.minimum = minimum;
      World world(quick(order), options);
      const Packings packings(world.evaluator);
      int told = 0;
      const auto tell = [&](std::size_t, std::size_t) { ++told; };
      packings.prepare(3, false, tell);
      EXPECT_GT(told, 0);
      const int first = told;
      for (const int log_slots : {1, 9}) packings.prepare(log_slots, false, tell);
      // The fewest keys serve all slots alone, and their bootstrapper is made once. Among all keys
      // are those of other ways.
      if (minimum) {
        EXPECT_EQ(told, first);
      }
      world.log_slots = 3;
      const auto v = world.vector(8);
      const auto y =
          packings.apply(world.encrypt(v, world.bootstrapper->plan().input_level()), -1, 1, false);
      EXPECT_EQ(y.log_slots, 3);
      const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
      EXPECT_GT(World::precision(world.decrypt(y), v), predicted - 3) << world.seed;
    }
  }
  // Keys for fewer slots than the value has do not serve it.
  World world(quick(BootstrapOrder::slots_first), {4});
  const Packings packings(world.evaluator);
  try {
    packings.prepare(5, false);
    FAIL();
  } catch (const KeyMissing& error) {
    EXPECT_NE(std::string(error.what()).find("bootstrap=32, or with bootstrap=True"),
              std::string::npos);
  }
  EXPECT_EQ(served(*world.evaluator, 4)->few.log_slots, 4);
  EXPECT_EQ(served(*world.evaluator, 4)->time, 1);
  EXPECT_LE(served(*world.evaluator, 2)->few.log_slots, 4);
  EXPECT_FALSE(served(*world.evaluator, 5));
}

TEST(Packings, TellOfFewerKeys) {
  struct Told {
    std::size_t slots, with;
    double time;
  };
  std::vector<Told> told;
  const auto tell = [&](std::size_t slots, std::size_t with, double time) {
    told.push_back({slots, with, time});
  };
  BootstrapperOptions options{9};
  World all(quick(BootstrapOrder::slots_first), options);
  const Packings whole(all.evaluator, tell);
  whole.prepare(9, false);
  EXPECT_TRUE(told.empty()) << "all keys are there";
  options.minimum = true;
  World fewest(quick(BootstrapOrder::slots_first), options);
  const Packings packings(fewest.evaluator, tell);
  for (int twice = 0; twice < 2; ++twice) packings.prepare(9, false);
  ASSERT_EQ(told.size(), 1U) << "once, when it is made";
  EXPECT_EQ(told[0].slots, 512U);
  EXPECT_EQ(told[0].with, 512U);
  const std::vector<int> slots{9};
  EXPECT_NEAR(told[0].time, key_sets(fewest.params, slots).front().time, 1e-9);
  EXPECT_GT(told[0].time, 1);
  // Few slots are bootstrapped as all are.
  packings.prepare(3, false);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].slots, 8U);
  EXPECT_EQ(told[1].with, 512U);
  EXPECT_GT(told[1].time, told[0].time);
  // If it throws, nothing is made, and the next call tells again.
  bool refuses = true;
  const Packings strict(fewest.evaluator, [&](std::size_t, std::size_t, double) {
    if (refuses) throw std::runtime_error("not with these keys");
    ++told[0].slots;
  });
  EXPECT_THROW(strict.prepare(9, false), std::runtime_error);
  refuses = false;
  strict.prepare(9, false);
  EXPECT_EQ(told[0].slots, 513U);
}

TEST(Packings, AreMadeByOneThreadAndUsedByMany) {
  World world(quick(BootstrapOrder::raise_first), {9});
  const Packings packings(world.evaluator);
  const auto v = world.vector(512);
  const auto x = world.encrypt(v, world.bootstrapper->plan().input_level());
  std::vector<ckks::Ciphertext> results(3);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = packings.apply(x); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) expect_near(world, result, v);
}

}  // namespace
}  // namespace jali::bootstrap::testing
