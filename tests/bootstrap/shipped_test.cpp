// The circuits of the presets on small rings, in every combination of the sparse secret's weight,
// packing, levels, order and word. They have head bits on 32-bit words, a cosine weighted by the
// density of the integers, and no arcsine with slots_first.
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
    if (preset.name == "n16_real") continue;  // it has the circuit of n16_fast
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
          // With fewer slots the noise under one key may be far from the average over keys.
          const bool many = v.size() >= 256;
          EXPECT_GT(measured, predicted - (many ? 1 : 3)) << "seed " << world.seed;
          // With two slots the sine's error is small if their numbers happen to be small.
          EXPECT_LT(measured, predicted + (many            ? 3
                                           : log_slots > 1 ? 7
                                                           : 11))
              << "seed " << world.seed;
          // With fewer levels or fewer slots the precision is a little below that of the whole
          // preset. Complex numbers may be real normal ones, whose error is up to 1.5 bits larger.
          EXPECT_GT(predicted, preset.precision_bits - (log_slots > 1 ? 1.5 : 3));
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
