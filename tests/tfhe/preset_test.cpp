// Every preset on the CPU engine: every value through random tables, with the noise of the results from both sides of the
// formulas, and all gates.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "../seeded.h"
#include "jali/params/tfhe_presets.h"
#include "jali/tfhe/gates.h"
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

/// Looks up `count` values, each at least once if there are as many, in a random table.
void look_up(std::string_view name, std::size_t count) {
  JALI_SEEDED(rng);
  SCOPED_TRACE(std::string(name));
  PresetWorld world(name);
  const std::uint64_t p = world.params->value_modulus();
  Values x(count), f(p), expected;
  for (std::size_t i = 0; i < count; ++i) x[i] = (i + count / 2) % p;
  for (auto& value : f) value = rng() % p;
  f[1] = p - 1 - f[0];  // a table of zeros alone stays without noise
  for (const std::uint64_t value : x) expected.push_back(f[value]);
  // As much noise as the parameters allow for, of independent parts: x and clear multiples of encrypted zeros.
  const auto& ev = *world.evaluator;
  const Ciphertext values = ev.bind(world.client.encrypt(x, p - 1));
  Linear noisy;
  const auto weight = static_cast<std::int64_t>(std::sqrt(world.params->max_norm2() - 1));
  const Ciphertext zero = ev.bind(world.client.encrypt(Values(count), 0));
  for (std::uint32_t i = 0; i < count; ++i) {
    noisy.add(i, 1);
    noisy.add(static_cast<std::uint32_t>(count) + i, weight);
    noisy.end_row();
  }
  const Ciphertext* const inputs[] = {&values, &zero};
  const Ciphertext y = ev.apply(ev.linear(inputs, noisy), LookUpTable(world.params, f));
  EXPECT_EQ(world.client.decrypt(y), expected);
  if (count < 256) return;
  double squares = 0;
  for (const double error : world.client.errors(y)) squares += error * error;
  const double step = static_cast<double>(world.params->step()) *
                      std::ldexp(1.0, -backend::torus_bits(world.params->ciphertext_torus()));
  const double measured = squares / static_cast<double>(count) * step * step;
  const NoiseModel model(world.params->literal());
  const RotationNoise rotation = model.blind_rotation();
  const double switched = world.params->order() == Order::bootstrap_first ? model.key_switch() : 0;
  // 256 normal errors have a variance within 0.55 to 1.65 of the mean with a probability above 1 - 1e-9. The transform's
  // error is a bound in the formula, and not in the lower end here.
  EXPECT_GT(measured, 0.55 * (rotation.key + rotation.rounding + switched));
  EXPECT_LT(measured, 1.65 * model.bootstrapped(world.params->order()));
}

TEST(TfhePresets, LookUpEveryValue) {
  for (const Preset& preset : presets()) {
    if (preset.N > 2048) continue;
    look_up(preset.name, 256);
  }
}

TEST(TfhePresetsLong, LookUpEveryValueOfLargePolynomials) {
  for (const Preset& preset : presets()) {
    if (preset.N <= 2048) continue;
    look_up(preset.name, preset.N <= 8192 ? 64 : 16);
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
