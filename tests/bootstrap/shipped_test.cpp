// The circuits that presets have (heads, a weighted cosine, no arcsin with slots first), in every combination of secret, packing, levels,
// order and word.
#include "../backend/sanitized.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

struct Combination {
  BootstrapOrder order;
  Word word;
};

void PrintTo(const Combination& c, std::ostream* out) {
  *out << static_cast<int>(c.order) << " " << word_name(c.word);
}

class ShippedCircuits : public ::testing::TestWithParam<Combination> {};

TEST_P(ShippedCircuits, EveryCombination) {
  const auto [order, word] = GetParam();
  int heads = 0, arcsin = 0;
  for (const auto& preset : params::bootstrap_presets()) {
    if (preset.name == "n16_real") continue;  // n16_fast's circuit
    if (backend::test::kSanitized && preset.name != "n16_fast") continue;
    for (const auto& [cts, stc] : {std::pair{4, 3}, {2, 3}, {3, 2}}) {
      if (backend::test::kSanitized && cts != 4) continue;
      for (const int weight : {16, 32}) {
        auto literal = shipped(preset, order, word, cts, stc);
        literal.bootstrap->weight = weight;
        heads += literal.bootstrap->head_bits > 0;
        arcsin += literal.bootstrap->inverse_sine > 1;
        const auto params = ckks::Params::create(literal);
        for (const int log_slots : {9, 8, 4, 1}) {
          SCOPED_TRACE(std::string(preset.name) + " levels " + std::to_string(cts) + ", " +
                       std::to_string(stc) + " weight " + std::to_string(weight) + " slots 2^" +
                       std::to_string(log_slots));
          World world(params, {log_slots});
          const auto v = world.vector(std::size_t{1} << log_slots);
          const int level = world.bootstrapper->plan().input_level();
          const auto y = world.bootstrapper->apply(world.encrypt(v, level));
          EXPECT_EQ(y.level, params->depth());
          EXPECT_EQ(y.log_slots, log_slots);
          const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
          const double measured = World::precision(world.decrypt(y), v);
          const bool many =
              v.size() >= 256;  // else one key's noise may be far from the average key's
          EXPECT_GT(measured, predicted - (many ? 1 : 3)) << "seed " << world.seed;
          // What the sine takes of two slots is little where their numbers happen to be small.
          EXPECT_LT(measured, predicted + (many            ? 2.5
                                           : log_slots > 1 ? 6
                                                           : 10))
              << "seed " << world.seed;
          // Few levels, and few slots, cost some of what the preset has in full.
          EXPECT_GT(predicted, preset.precision_bits - (log_slots > 1 ? 0.8 : 2.5));
        }
      }
    }
  }
  if (order == BootstrapOrder::slots_first) {
    EXPECT_EQ(arcsin, 0);
  }
  EXPECT_EQ(heads > 0, word == Word::w32);
}

std::vector<Combination> combinations() {
  std::vector<Combination> out;
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const Word word : {Word::w32, Word::w52, Word::w64}) out.push_back({order, word});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ShippedCircuits, ::testing::ValuesIn(combinations()), [](const auto& info) {
      return std::string(info.param.order == BootstrapOrder::raise_first ? "raise_" : "slots_") +
             std::string(word_name(info.param.word));
    });

}  // namespace
}  // namespace jali::bootstrap::testing
