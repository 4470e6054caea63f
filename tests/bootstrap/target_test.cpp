// Bootstrapping that restores fewer levels is right, uses the same keys and costs less.
#include "jali/backend/trace/trace.h"
#include "jali/params/bootstrap_request.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

BootstrapLiteral literal(BootstrapOrder order) {
  BootstrapLiteral b;
  b.order = order;
  b.degree = 62;
  b.doublings = 2;
  b.inverse_sine = 7;
  b.cts_levels = 3;
  b.stc_levels = 2;
  b.stc_bits = 45;
  return b;
}

TEST(TargetLevel, EveryOneIsRight) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const Word word : {Word::w32, Word::w52, Word::w64}) {
      Case c{"target", word, word == Word::w32 ? 50.0 : 45.0, 6, literal(order)};
      if (word == Word::w32) c.bootstrap.stc_bits = 50;
      for (const bool minimum : {false, true}) {
        World world(c, {7, false, minimum});
        const int lowest = world.bootstrapper->plan().input_level();
        for (int target = lowest; target <= 6; ++target) {
          SCOPED_TRACE("order " + std::to_string(static_cast<int>(order)) + " " +
                       std::string(word_name(word)) + " level " + std::to_string(target));
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
  }
}

// With rational levels, the parameters' part of every depth is as precise as the whole, estimated and measured. It is so
// with the keys of the whole and with keys cut to the part.
TEST(TargetLevel, EveryOneOfRationalLevelsIsRight) {
  int parts = 0, none = 0;  // if a depth has no part, the next larger part is used, or the whole
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
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
        SCOPED_TRACE("order " + std::to_string(static_cast<int>(order)) + " bits " +
                     std::to_string(precision) + " level " + std::to_string(target));
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
  }
  EXPECT_GT(parts, 45);
  EXPECT_LT(none, 5);
}

class TargetLevelCost : public ::testing::TestWithParam<Word> {};

TEST_P(TargetLevelCost, Falls) {
  const Case c{"cost", GetParam(), 45, 8, literal(BootstrapOrder::raise_first)};
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
  World world({"checks", Word::w64, 45, 4, literal(BootstrapOrder::slots_first)}, {5});
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
  World other({"other", Word::w64, 44, 4, literal(BootstrapOrder::slots_first)}, {5});
  EXPECT_THROW(ckks::Evaluator(part, *other.evaluator), ParamsMismatch);
  EXPECT_THROW(world.params->with_depth(5), InvalidArgument);
}

}  // namespace
}  // namespace jali::bootstrap::testing
