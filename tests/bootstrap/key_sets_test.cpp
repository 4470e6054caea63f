// Sets of keys between the fewest and all: their bytes, the order of their times, and the results
// with each.
#include "jali/bootstrap/key_sets.h"

#include <map>

#include "jali/bootstrap/packings.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

std::vector<Case> cases() {
  return {{"slots_w32", Word::w32, 50, 3, precise(BootstrapOrder::slots_first, 3, 2, 50)},
          {"raise_w52", Word::w52, 45, 4, precise(BootstrapOrder::raise_first, 2, 3)},
          {"slots_one_level", Word::w52, 45, 3, precise(BootstrapOrder::slots_first, 1, 1)}};
}

BootstrapPlan plan_of(const ckks::ParamsPtr& params, int log_slots,
                      const std::optional<FewKeys>& few) {
  return BootstrapPlan(params, {log_slots, false, false, -1, few});
}

class KeySetsOf : public ::testing::TestWithParam<Case> {};

// The bytes and rotations of every set are those of the plans that are made for it.
TEST_P(KeySetsOf, AreACurveFromTheFewestKeysToAll) {
  const auto params = ckks::Params::create(literal_of(GetParam()));
  for (const int log_slots : {9, 8, 3, 1}) {
    SCOPED_TRACE(log_slots);
    const auto sets = key_sets(params, {&log_slots, 1});
    ASSERT_GE(sets.size(), 2u);
    for (std::size_t k = 0; k < sets.size(); ++k) {
      const auto plan = plan_of(params, log_slots, sets[k].few.at(0));
      EXPECT_EQ(expanded_key_bytes(*params, {&plan, 1}), sets[k].bytes) << k;
      if (k == 0) continue;
      EXPECT_GT(sets[k].bytes, sets[k - 1].bytes);
      EXPECT_LE(sets[k].time, sets[k - 1].time);
    }
    EXPECT_EQ(sets.back().time, 1);
    EXPECT_FALSE(sets.back().few.at(0));
    const BootstrapPlan fewest(params, {log_slots, false, /*minimum=*/true});
    const auto first = plan_of(params, log_slots, sets.front().few.at(0));
    EXPECT_EQ(first.rotation_levels(), fewest.rotation_levels());
    // No key can be left out: each matrix needs its step, which is the first of its diagonals when
    // they are shifted to begin at 0.
    const auto& b = *params->bootstrap();
    EXPECT_LE(first.rotations().size(),
              static_cast<std::size_t>(b.cts_levels + b.stc_levels + 1 + (9 - log_slots + 3) / 4));
  }
}

// Which keys there are is the same with and without matrices.
TEST_P(KeySetsOf, AreKnownWithoutMatrices) {
  const auto params = ckks::Params::create(literal_of(GetParam()));
  const std::vector<int> rotations{3, -70};
  const auto compare = [&](const std::vector<int>& packings, const KeyChoice& choice,
                           const KeySet& set, const std::vector<int>& wanted) {
    std::vector<BootstrapPlan> plans;
    for (std::size_t k = 0; k < packings.size(); ++k) {
      plans.push_back(plan_of(params, packings[k], set.few.empty() ? std::nullopt : set.few[k]));
    }
    const KeyLevels expected = key_levels(*params, plans, wanted);
    std::map<int, int> levels;
    for (const int r : rotations) levels[r] = params->depth();
    const KeyLevels found = key_levels(params, packings, levels, choice);
    EXPECT_EQ(found.rotations, expected.rotations);
    EXPECT_EQ(found.conjugate, expected.conjugate);
    EXPECT_EQ(found.relinearise, expected.relinearise);
  };
  for (const auto& packings : std::vector<std::vector<int>>{{9}, {3, 9}, {1}}) {
    compare(packings, {}, {}, rotations);
    const std::vector<int> powers{-64, -4, -2, 1, 2};
    compare(packings, {true, {}}, key_sets(params, packings, powers).front(), powers);
    const auto sets = key_sets(params, packings);  // further rotations do not change the choice
    for (std::size_t k = 0; k < sets.size(); k += 1 + sets.size() / 2) {
      compare(packings, {false, sets[k].bytes}, sets[k], rotations);
    }
  }
}

TEST_P(KeySetsOf, GiveTheSameResults) {
  const auto params = ckks::Params::create(literal_of(GetParam()));
  for (const int log_slots : {9, 4}) {
    const auto sets = key_sets(params, {&log_slots, 1});
    for (std::size_t k = 0; k < sets.size(); k += 1 + sets.size() / 3) {
      SCOPED_TRACE("slots 2^" + std::to_string(log_slots) + ", set " + std::to_string(k));
      World world(params, {log_slots, false, false, -1, sets[k].few.at(0)}, /*prepare=*/k % 2 == 0);
      const auto v = world.vector(std::size_t{2} << log_slots);
      const int level = world.bootstrapper->plan().input_level();
      const auto x = world.encrypt(v, level, 0, 2);
      const auto y = world.bootstrapper->apply(x);
      const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
      EXPECT_GT(predicted, 24);
      EXPECT_GT(World::precision(world.decrypt(y), v), predicted - (log_slots > 7 ? 1 : 3))
          << world.seed;
      // An evaluator finds the way that its keys serve, also for fewer levels.
      const Packings packings(world.evaluator);
      const auto z = packings.apply(x, params->depth() - 1, 1, /*real=*/false);
      EXPECT_GT(World::precision(world.decrypt(z), v), predicted - (log_slots > 7 ? 2 : 4));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, KeySetsOf, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

TEST(KeySets, OfSeveralPackingsShareKeys) {
  const auto params = ckks::Params::create(literal_of(cases()[0]));
  const std::vector<int> packings{9, 5};
  const int rotation = 3;
  const auto sets = key_sets(params, packings, {&rotation, 1}, /*conjugate=*/true);
  for (const KeySet& set : sets) {
    std::vector<BootstrapPlan> plans;
    for (std::size_t k = 0; k < 2; ++k) plans.push_back(plan_of(params, packings[k], set.few[k]));
    EXPECT_EQ(expanded_key_bytes(*params, plans, {&rotation, 1}, true), set.bytes);
  }
}

// Plans whose keys are for more slots than the values have.
TEST(KeySets, ServeValuesOfAsManySlotsOrFewer) {
  const auto params = ckks::Params::create(literal_of(cases()[0]));
  FewKeys few;
  few.trace = 1;
  for (const int more : {5, 9}) {
    few.log_slots = more;
    EXPECT_EQ(plan_of(params, 5, few).options().log_slots, more);
    EXPECT_EQ(plan_of(params, 5, few).rotation_levels(),
              plan_of(params, more, {}).rotation_levels());
  }
  for (const int bad : {0, 4, 10}) {
    few.log_slots = bad;
    EXPECT_THROW(plan_of(params, 5, few), InvalidArgument);
  }
}

TEST(KeySets, TakeLessTimeWithFewerSlots) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label);
    const auto params = ckks::Params::create(literal_of(c));
    const bool slots_first = c.bootstrap.order == BootstrapOrder::slots_first;
    for (const int log_slots : {9, 8, 3, 1}) {
      const double complex = predicted_time(params, log_slots, false);
      const double real = predicted_time(params, log_slots, true);
      EXPECT_GT(real, 0);
      // With slots_first, dropping imaginary parts saves half of the reduction, and no more.
      EXPECT_EQ(real < complex, slots_first);
      EXPECT_GT(real, complex / 2);
    }
    for (const int bad : {-1, 0, 10}) {
      EXPECT_THROW(predicted_time(params, bad, false), InvalidArgument);
    }
  }
  // In the circuit of a preset, a few slots need less; keys for all slots take the time that their
  // curve is measured in.
  const auto params = ckks::Params::create(literal_of(cases()[0]));
  EXPECT_LT(predicted_time(params, 3, true), predicted_time(params, 9, true));
}

TEST(KeySets, AreChosenByBytes) {
  const auto params = ckks::Params::create(literal_of(cases()[0]));
  const int log_slots = 9;
  const auto sets = key_sets(params, {&log_slots, 1});
  ASSERT_GE(sets.size(), 4u);
  for (const int bad : {-1, 0, 10}) EXPECT_THROW(key_sets(params, {&bad, 1}), InvalidArgument);
  EXPECT_THROW(key_sets(params, {}), InvalidArgument);
  EXPECT_EQ(keys_within(sets, sets[2].bytes).bytes, sets[2].bytes);
  EXPECT_EQ(keys_within(sets, sets[3].bytes - 1).bytes, sets[2].bytes);
  EXPECT_EQ(keys_within(sets, std::size_t{1} << 60).bytes, sets.back().bytes);
  try {
    keys_within(sets, sets.front().bytes - 1);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(sets.front().bytes)),
              std::string::npos);
  }
}

}  // namespace
}  // namespace jali::bootstrap::testing
