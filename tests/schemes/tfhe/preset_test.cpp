// Every preset on the CPU engine: values through random tables, with the noise of the results
// from both sides of the formulas, and all gates.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "../../seeded.h"
#include "jali/params/tfhe_presets.h"
#include "jali/schemes/tfhe/gates.h"
#include "preset_look_ups.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::TfheWorld;
using test::Values;

constexpr int kThreads = 2;

struct PresetWorld {
  explicit PresetWorld(std::string_view name)
      : params(Params::create(preset(name))),
        client(params, kThreads),
        evaluator(std::make_shared<Evaluator>(std::shared_ptr<const backend::TfheOps>(
                                                  backend::make_cpu_tfhe(params->config(kThreads))),
                                              client.evaluation_keys())) {}
  ParamsPtr params;
  Client client;
  std::shared_ptr<const Evaluator> evaluator;
};

void look_up_every_value(const Preset& preset, std::size_t least) {
  JALI_SEEDED(rng);
  SCOPED_TRACE(std::string(preset.name));
  PresetWorld world(preset.name);
  const std::uint64_t p = world.params->value_modulus();
  test::expect_look_ups_of_every_value(world.client, *world.evaluator, (least + p - 1) / p, rng);
}

TEST(TfhePresets, LookUpEveryValue) {
  for (const Preset& preset : presets()) {
    if (preset.N <= 2048) look_up_every_value(preset, 256);
  }
}

/// With N = 65536 a look-up takes seconds. tests/gpu looks up every value.
TEST(TfhePresetsLong, LookUpValuesOfLargePolynomials) {
  for (const Preset& preset : presets()) {
    if (preset.N <= 2048) continue;
    if (preset.N <= 16384) {
      look_up_every_value(preset, 64);
    } else {
      JALI_SEEDED(rng);
      SCOPED_TRACE(std::string(preset.name));
      PresetWorld world(preset.name);
      test::expect_look_ups_of_some_values(world.client, *world.evaluator, 24, rng);
    }
  }
}

TEST(TfhePresets, TheRangeOfAVarianceHoldsItAndIsNarrow) {
  JALI_SEEDED(rng);
  std::normal_distribution<double> normal;
  for (const std::size_t count : {16, 64, 256, 1024}) {
    const auto [least, most] = test::variance_range(count);
    EXPECT_GT(least, 0);
    for (int run = 0; run < 200; ++run) {
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += std::pow(normal(rng), 2);
      EXPECT_GT(sum / static_cast<double>(count), least);
      EXPECT_LT(sum / static_cast<double>(count), most);
    }
    EXPECT_LT(most / least, count < 64 ? 1e3 : count < 256 ? 13 : 3.5);
  }
}

TEST(TfhePresets, GatesHaveTheirTruthTables) {
  JALI_SEEDED(rng);
  for (const Preset& preset : presets()) {
    if (preset.message_bits + preset.carry_bits != 1) continue;
    SCOPED_TRACE(std::string(preset.name));
    PresetWorld world(preset.name);
    const Gates circuit(world.evaluator);
    Values x(64), y(64), z(64);
    for (auto* const bits : {&x, &y, &z}) {
      for (auto& bit : *bits) bit = rng() & 1;
    }
    const auto& ev = *world.evaluator;
    const Ciphertext a = ev.bind(world.client.encrypt(x)), b = ev.bind(world.client.encrypt(y)),
                     c = ev.bind(world.client.encrypt(z));
    const auto expect = [&](Gate gate, const auto& of) {
      Values expected;
      for (std::size_t i = 0; i < x.size(); ++i) expected.push_back(of(x[i], y[i]) & 1);
      EXPECT_EQ(world.client.decrypt(circuit.apply(gate, a, b)), expected)
          << static_cast<int>(gate);
    };
    expect(Gate::and_gate, [](auto p, auto q) { return p & q; });
    expect(Gate::nand_gate, [](auto p, auto q) { return ~(p & q); });
    expect(Gate::or_gate, [](auto p, auto q) { return p | q; });
    expect(Gate::nor_gate, [](auto p, auto q) { return ~(p | q); });
    expect(Gate::xor_gate, [](auto p, auto q) { return p ^ q; });
    expect(Gate::xnor_gate, [](auto p, auto q) { return ~(p ^ q); });
    expect(Gate::andny_gate, [](auto p, auto q) { return ~p & q; });
    expect(Gate::andyn_gate, [](auto p, auto q) { return p & ~q; });
    expect(Gate::orny_gate, [](auto p, auto q) { return ~p | q; });
    expect(Gate::oryn_gate, [](auto p, auto q) { return p | ~q; });
    Values chosen;
    for (std::size_t i = 0; i < x.size(); ++i) chosen.push_back(x[i] != 0 ? y[i] : z[i]);
    EXPECT_EQ(world.client.decrypt(circuit.mux(a, b, c)), chosen);
  }
}

}  // namespace
}  // namespace jali::tfhe
