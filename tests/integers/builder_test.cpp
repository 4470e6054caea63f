// What a builder promises its callers, on circuits that are small enough to count by hand.
#include "jali/integers/builder.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "../seeded.h"
#include "clear_machine.h"

namespace jali::integers::test {
namespace {

std::vector<int> times(std::size_t count, int value) { return std::vector<int>(count, value); }

/// Runs a circuit whose inputs and outputs are digits.
std::vector<int> run(const ClearMachine& machine, const Circuit& circuit,
                     const std::vector<int>& digits, std::vector<std::uint8_t> clear = {}) {
  ClearRows rows(digits.size());
  for (std::size_t i = 0; i < digits.size(); ++i) rows.digits[i] = {2 * digits[i], 1, 0, true};
  const Operand operand{&rows, true};
  const auto out = machine.run(circuit, {{&operand, 1}, clear, 1});
  std::vector<int> values;
  for (const auto& digit : static_cast<const ClearRows&>(*out).digits) {
    values.push_back(static_cast<int>(digit.value / 2));
  }
  return values;
}

TEST(Builder, TablesOfOneFormShareARotationIfTheSpaceAllows) {
  for (const int many : {0, 1, 2}) {
    const ClearMachine machine(space_of(2, 1, many));
    Builder b(machine.space());
    const auto x = b.operand(times(2, 3), 1);
    const Form sum = x[0] + x[1];  // at most 6: room for two tables
    const std::vector<Form> outputs{b.look_up(sum, [](int v) { return v % 4; }),
                                    b.look_up(sum, [](int v) { return v / 4; }),
                                    b.look_up(x[0], [](int v) { return v * v % 4; }),
                                    b.look_up(x[0], [](int v) { return v * v / 4; }),
                                    b.look_up(x[0], [](int v) { return (v + 1) % 4; })};
    const auto circuit = b.finish(outputs, times(5, 3), 1);
    EXPECT_EQ(circuit->look_ups(), many == 0 ? 5u : many == 1 ? 3u : 2u);
    EXPECT_EQ(circuit->depth(), 1u);
    for (int u = 0; u < 4; ++u) {
      for (int v = 0; v < 4; ++v) {
        EXPECT_EQ(run(machine, *circuit, {u, v}),
                  (std::vector<int>{(u + v) % 4, (u + v) / 4, u * u % 4, u * u / 4, (u + 1) % 4}));
      }
    }
  }
}

TEST(Builder, FoldsWhatNeedsNoLookUp) {
  const ClearMachine machine(space_of(2));
  Builder b(machine.space());
  const auto x = b.operand(times(1, 3), 1);
  EXPECT_TRUE(b.look_up(Form(3), [](int v) { return v - 2; }).is_constant());
  EXPECT_TRUE(b.look_up(x[0], [](int) { return 2; }).is_constant());
  b.look_up(x[0], [](int v) { return v ^ 1; });  // that no output needs
  const Form twice = b.look_up(x[0], [](int v) { return v == 3; });
  const std::vector<Form> outputs{b.look_up(x[0], [](int v) { return v; }),
                                  b.look_up(x[0], [](int v) { return 3 - v; }), twice,
                                  b.look_up(x[0], [](int v) { return v == 3; })};
  const auto circuit = b.finish(outputs, times(4, 3), 1);
  EXPECT_EQ(circuit->look_ups(), 1u);
  for (int v = 0; v < 4; ++v) {
    EXPECT_EQ(run(machine, *circuit, {v}), (std::vector<int>{v, 3 - v, v == 3, v == 3}));
  }
}

TEST(Builder, NoiseIsScaledWhereItComesFrom) {
  const ClearMachine machine(space_of(2));  // budget 25
  Builder b(machine.space());
  const auto x = b.operand(times(3, 3), 1);
  const Form flag = b.look_up(x[0], [](int v) { return v > 1; });
  const Form input = x[1] - x[2] + flag * 7;  // 1 + 1 + 49
  EXPECT_EQ(b.noise(input), 51);
  const std::vector<Form> outputs{
      b.look_up(input, [](int v) { return v >= 4 ? v - 4 : 0; }).within(0, 7)};
  const auto circuit = b.finish(outputs, times(1, 15), 1);
  EXPECT_EQ(circuit->look_ups(), 2u);  // 7 flag directly, no wave of its own
  EXPECT_EQ(circuit->depth(), 2u);
  for (int u = 0; u < 4; ++u) {
    const int v = 3 - 1 + (u > 1 ? 7 : 0);
    EXPECT_EQ(run(machine, *circuit, {u, 3, 1})[0], v >= 4 ? v - 4 : 0);
  }
}

TEST(Builder, KeysChooseTablesByLane) {
  const ClearMachine machine(space_of(2));
  Builder b(machine.space());
  const auto x = b.operand(times(1, 3), 1);
  const Form first = b.clear(3), second = b.clear(1);
  const Form key = first * 2 + second;
  const std::vector<Form> outputs{
      b.look_up_keyed(x[0], key, [](int v, int k) { return v * k % 4; }), x[0]};
  const auto circuit = b.finish(outputs, times(2, 3), 1);
  EXPECT_EQ(circuit->look_ups(), 1u);
  JALI_SEEDED(rng);
  for (int i = 0; i < 50; ++i) {
    const int v = static_cast<int>(rng() % 4), high = static_cast<int>(rng() % 4),
              low = static_cast<int>(rng() % 2);
    EXPECT_EQ(run(machine, *circuit, {v},
                  {static_cast<std::uint8_t>(high), static_cast<std::uint8_t>(low)})[0],
              v * (2 * high + low) % 4);
  }
}

TEST(Builder, RefusesWhatDoesNotFit) {
  Builder b(space_of(2));
  const auto x = b.operand(times(30, 3), 1);
  EXPECT_THROW(b.look_up(x[0] * 6, [](int) { return 0; }), InternalError);
  EXPECT_THROW(b.look_up(x[0], [](int v) { return 6 * v; }), InternalError);
  Form sum;
  for (const Form& digit : x) sum += digit;
  EXPECT_THROW(b.look_up(sum.within(0, 15), [](int v) { return v % 4; }), InternalError);
  const std::vector<Form> outputs{x[0] + x[1]};
  EXPECT_THROW(b.finish(outputs, times(1, 3), 4), InternalError);
}

TEST(Circuit, SlotsAreUsedAgain) {
  // A chain of look-ups needs as many slots as are alive, not as many as there are.
  const ClearMachine machine(space_of(2));
  Builder b(machine.space());
  Form digit = b.operand(times(1, 3), 1)[0];
  for (int i = 0; i < 40; ++i) {
    digit = b.look_up(digit, [](int v) { return v < 2 ? 2 * v + 1 : 2 * v - 4; });
  }
  const auto circuit = b.finish({&digit, 1}, times(1, 3), 1);
  EXPECT_EQ(circuit->depth(), 40u);
  EXPECT_LE(circuit->arena, 2u);
}

}  // namespace
}  // namespace jali::integers::test
