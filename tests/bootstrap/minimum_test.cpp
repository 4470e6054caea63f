// With the fewest keys, results are the same within noise and the keys have a fraction of the
// bytes.
#include "jali/bootstrap/key_sets.h"
#include "jali/params/ckks/bootstrap_request.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    const std::string o = order == BootstrapOrder::raise_first ? "raise_" : "slots_";
    out.push_back({o + "w64", Word::w64, 45, 4, precise(order, 3, 2)});
    out.push_back({o + "w52", Word::w52, 45, 4, precise(order, 2, 3)});
    out.push_back({o + "w32", Word::w32, 50, 3, precise(order, 4, 1, 50)});
    out.push_back({o + "one_level", Word::w52, 45, 3, precise(order, 1, 1)});
  }
  return out;
}

class MinimumKeysOf : public ::testing::TestWithParam<Case> {};

TEST_P(MinimumKeysOf, GiveTheSameResults) {
  const Case& c = GetParam();
  for (const int log_slots : {9, 8, 4, 1}) {
    for (const bool real : {false, true}) {
      if (real && log_slots % 2 == 0) continue;
      SCOPED_TRACE("slots 2^" + std::to_string(log_slots));
      const BootstrapperOptions options{log_slots, real, /*minimum=*/true};
      World world(c, options, /*prepare=*/log_slots == 9);
      const auto& params = *world.params;
      const auto v = world.vector(std::size_t{2} << log_slots, real);
      const int level = world.bootstrapper->plan().input_level();
      const auto x = world.encrypt(v, level, 0, 2);
      for (int target : {-1, level}) {
        const auto y = world.bootstrapper->apply(x, target);
        EXPECT_EQ(y.level, target < 0 ? params.depth() : target);
        const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
        const double measured = World::precision(world.decrypt(y), v);
        EXPECT_GT(predicted, 24);
        EXPECT_GT(measured, predicted - (log_slots > 7 ? 1 : 3)) << world.seed;
      }
      // One key for each matrix, one for the rotation of the result, and every fourth of the trace.
      const auto& b = *params.bootstrap();
      EXPECT_LE(
          world.bootstrapper->plan().rotations().size(),
          static_cast<std::size_t>(b.cts_levels + b.stc_levels + 1 + (9 - log_slots + 3) / 4));
      const BootstrapPlan full(world.params, {log_slots, real});
      const BootstrapPlan fewest(world.params, options);
      const auto key_bytes_of = [&](const BootstrapPlan& plan) {
        return key_bytes(params, {&plan, 1});
      };
      EXPECT_LE(key_bytes_of(fewest), key_bytes_of(full));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, MinimumKeysOf, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

TEST(MinimumKeys, ServeIterationsAndPairs) {
  World world({"w52", Word::w52, 45, 4, precise(BootstrapOrder::raise_first, 2, 2)},
              {6, /*real=*/false, /*minimum=*/true});
  const auto a = world.vector(64, true), b = world.vector(64, true);
  const auto [y, z] =
      world.bootstrapper->apply_pair(world.encrypt(a, 1), world.encrypt(b, 1), -1, 2);
  EXPECT_GT(World::precision(world.decrypt(y), a), 24) << world.seed;
  EXPECT_GT(World::precision(world.decrypt(z), b), 24) << world.seed;
}

// The sizes that are stated for presets before any key is made.
TEST(MinimumKeys, TakeAFractionOfTheBytes) {
  params::BootstrapRequest request;
  request.order = BootstrapOrder::raise_first;
  request.precision_bits = 22;
  request.levels_after = 13;
  request.scale_bits = 40;
  request.log_n = 16;
  const auto params = params::create_with_bootstrap(request);
  const BootstrapPlan full(params), fewest(params, {-1, false, /*minimum=*/true});
  const auto bytes = [&](const BootstrapPlan& plan) {
    return static_cast<double>(key_bytes(*params, {&plan, 1}));
  };
  EXPECT_LT(bytes(fewest), 0.25 * bytes(full));
  EXPECT_LT(bytes(fewest), 1.5e9);
}

// Few slots have a trace instead of large matrices. Once each of its rotations had a key, and they
// took 2.5 times as much as all slots do.
class MinimumKeysAt : public ::testing::TestWithParam<std::tuple<params::BootstrapPreset, Word>> {};

TEST_P(MinimumKeysAt, FewSlotsTakeNoMoreBytesThanAll) {
  const auto [preset, word] = GetParam();
  const auto params = ckks::Params::create(params::preset(preset.name, word));
  const std::vector<int> wanted{1, -3, 64};
  const int every = params->log_n() - 1;
  const auto fewest = [&](std::vector<int> packings, std::span<const int> rotations) {
    return key_sets(params, packings, rotations, !rotations.empty()).front().bytes;
  };
  const std::size_t all = fewest({every}, {}), with_others = fewest({every}, wanted);
  for (const int log_slots : {1, 5, every - 1}) {
    EXPECT_LE(fewest({log_slots}, {}), all) << log_slots;
    EXPECT_LE(fewest({log_slots}, wanted), with_others) << log_slots;
  }
  EXPECT_LE(fewest({4, every}, wanted), with_others);
  EXPECT_LE(fewest({1, 4, 7}, wanted), with_others);
  for (const int log_slots : {1, 6}) {
    const BootstrapPlan plan(params, {log_slots, false, /*minimum=*/true});
    EXPECT_EQ(expanded_key_bytes(*params, {&plan, 1}), fewest({log_slots}, {})) << log_slots;
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, MinimumKeysAt,
                         ::testing::Combine(::testing::ValuesIn(params::bootstrap_presets().begin(),
                                                                params::bootstrap_presets().end()),
                                            ::testing::Values(Word::w32, Word::w52)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(word_name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace jali::bootstrap::testing
