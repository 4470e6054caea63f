// Bootstrapping that restores fewer levels is right, uses the same keys and costs less.
#include "jali/backend/trace/trace.h"
#include "jali/params/ckks/bootstrap_request.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

std::string name_of(BootstrapOrder order) {
  return order == BootstrapOrder::raise_first ? "raise" : "slots";
}

class TargetLevels : public ::testing::TestWithParam<std::tuple<BootstrapOrder, Word>> {};

TEST_P(TargetLevels, AreRight) {
  const auto [order, word] = GetParam();
  const double scale = word == Word::w32 ? 50 : 45;
  const Case c{"target", word, scale, 6, precise(order, 3, 2, scale)};
  for (const bool minimum : {false, true}) {
    World world(c, {7, false, minimum});
    const int lowest = world.bootstrapper->plan().input_level();
    for (int target = lowest; target <= 6; ++target) {
      SCOPED_TRACE("level " + std::to_string(target));
      // The keys of `world` are those for all levels.
      const Bootstrapper some(world.evaluator,
                              BootstrapPlan(world.params, {7, false, minimum, target}));
      for (int level : {lowest, 6}) {
        const auto v = world.vector(2 * 128);
        const auto y = some.apply(world.encrypt(v, level, 0, 2));
        EXPECT_EQ(y.level, target);
        EXPECT_EQ(y.scale, world.params->scale(target));
        EXPECT_EQ(y.params, world.params);
        const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
        EXPECT_GT(predicted, 24);
        EXPECT_GT(World::precision(world.decrypt(y), v), predicted - 1.5) << world.seed;
        if (level == lowest && target > lowest + 1) {  // the result can be computed with
          const auto z = world.evaluator->relinearise_rescale(world.evaluator->square(y));
          std::vector<Complex> squares;
          for (const auto& x : v) squares.push_back(x * x);
          EXPECT_GT(World::precision(world.decrypt(z), squares), 22) << world.seed;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TargetLevels,
                         ::testing::Combine(::testing::Values(BootstrapOrder::raise_first,
                                                              BootstrapOrder::slots_first),
                                            ::testing::Values(Word::w32, Word::w52, Word::w64)),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) + "_" +
                                  std::string(word_name(std::get<1>(info.param)));
                         });

// With rational levels, the parameters' part of every depth is as precise as the whole, estimated
// and measured. It is so with the keys of the whole and with keys cut to the part.
class RationalTargetLevels : public ::testing::TestWithParam<BootstrapOrder> {};

TEST_P(RationalTargetLevels, AreRight) {
  const BootstrapOrder order = GetParam();
  int parts = 0, none = 0;  // if a depth has no part, the next larger part is used, or the whole
  for (const auto& [precision, cts, stc] :
       {std::array{5, 1, 3}, {12, 3, 3}, {20, 3, 3}, {24, 4, 2}, {31, 6, 1}}) {
    auto request = small_request(order, Word::w32, precision);
    request.cts_levels = cts;
    request.stc_levels = stc;
    request.levels_after = 5;
    const auto params = params::create_with_bootstrap(request);
    const int lowest = params->bootstrap()->input_level();
    World whole(params, {9});
    const auto v = whole.vector(params->slots());
    const auto bits = [&](World& world, const Bootstrapper& bootstrapper, int target) {
      const auto y = bootstrapper.apply(world.encrypt(v, lowest));
      EXPECT_EQ(y.level, target);
      EXPECT_EQ(y.scale, params->scale(target));
      return std::pair(world.evaluator->noise().precision_bits(y.estimate, y.scale),
                       World::precision(world.decrypt(y), v));
    };
    const auto [predicted, measured] = bits(whole, *whole.bootstrapper, params->depth());
    for (int target = lowest; target < params->depth(); ++target) {
      SCOPED_TRACE(std::to_string(precision) + " bits, level " + std::to_string(target));
      ++(params->with_depth(target) ? parts : none);
      const BootstrapperOptions options{9, false, false, target};
      World cut(params, options);
      for (const auto& [some_predicted, some_measured] :
           {bits(whole, Bootstrapper(whole.evaluator, BootstrapPlan(params, options)), target),
            bits(cut, *cut.bootstrapper, target)}) {
        EXPECT_GT(some_predicted, predicted - 0.3) << whole.seed;
        EXPECT_GT(some_measured, some_predicted - 0.4) << whole.seed << " " << cut.seed;
        EXPECT_GT(some_measured, measured - 0.6) << whole.seed << " " << cut.seed;
      }
    }
  }
  EXPECT_GT(parts, 22);
  EXPECT_LT(none, 3);
}

INSTANTIATE_TEST_SUITE_P(Cases, RationalTargetLevels,
                         ::testing::Values(BootstrapOrder::raise_first,
                                           BootstrapOrder::slots_first),
                         [](const auto& info) { return name_of(info.param); });

class TargetLevelCost : public ::testing::TestWithParam<Word> {};

TEST_P(TargetLevelCost, Falls) {
  const Case c{"cost", GetParam(), 45, 8, precise(BootstrapOrder::raise_first, 3, 2)};
  World world(c, {});
  const auto trace = std::make_shared<backend::Trace>();
  const auto traced = std::make_shared<const ring::Ring>(backend::make_trace_engine(
      std::shared_ptr<const backend::Engine>(world.ring, &world.ring->engine()), trace));
  rlwe::KeyGenerator keygen(world.params, world.ring);
  const BootstrapPlan all(world.params);
  const auto evaluator = std::make_shared<const ckks::Evaluator>(
      world.params, traced,
      std::make_shared<const rlwe::EvaluationKeys>(evaluation_keys(keygen, *world.sk, {&all, 1})));
  const auto x = world.encrypt(world.vector(world.params->slots()), 0);
  std::vector<double> cost;
  for (int target = 0; target <= 8; target += 4) {
    Bootstrapper some(evaluator, BootstrapPlan(world.params, {-1, false, false, target}));
    some.prepare();
    trace->clear();
    some.apply(x);
    double mults = 0;
    for (const auto& total : trace->totals()) mults += static_cast<double>(total.mults);
    cost.push_back(mults);
  }
  EXPECT_LT(cost[0], 0.9 * cost[1]);
  EXPECT_LT(cost[1], 0.9 * cost[2]);
  RecordProperty("cost_of_none", std::to_string(cost[0] / cost[2]));
}

INSTANTIATE_TEST_SUITE_P(Words, TargetLevelCost, ::testing::Values(Word::w32, Word::w64),
                         [](const auto& test) { return std::string(word_name(test.param)); });

TEST(TargetLevel, IsChecked) {
  World world({"checks", Word::w64, 45, 4, precise(BootstrapOrder::slots_first, 3, 2)}, {5});
  EXPECT_THROW(BootstrapPlan(world.params, {5, false, false, 5}), InvalidArgument);
  EXPECT_THROW(BootstrapPlan(world.params, {5, false, false, 1}), InvalidArgument);
  const Bootstrapper some(world.evaluator, BootstrapPlan(world.params, {5, false, false, 3}));
  const auto x = world.encrypt(world.vector(32), 2);
  EXPECT_EQ(some.apply(x, 2).level, 2);
  EXPECT_THROW(some.apply(x, 4), InvalidArgument);
  EXPECT_EQ(some.apply(x, -1, {}, 1).level, 3);

  // A part and the whole are different parameters: each refuses objects of the other.
  const auto part = world.params->with_depth(3);
  ASSERT_NE(part, nullptr);
  EXPECT_NE(part->hash(), world.params->hash());
  EXPECT_EQ(part->top(), world.params->top() - 1);
  World other({"other", Word::w64, 44, 4, precise(BootstrapOrder::slots_first, 3, 2)}, {5});
  EXPECT_THROW(ckks::Evaluator(part, *other.evaluator), ParamsMismatch);
  EXPECT_THROW(world.params->with_depth(5), InvalidArgument);
}

}  // namespace
}  // namespace jali::bootstrap::testing
