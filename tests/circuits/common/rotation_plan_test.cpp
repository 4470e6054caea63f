// Runs plans on plain numbers: for every split into baby and giant steps, the sum of rotated sums
// is the sum over the diagonals.
#include "jali/circuits/common/rotation_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "../../seeded.h"
#include "../ckks/support.h"

namespace jali::circuits::testing {
namespace {

const Scheme kScheme{"plan", Word::w64, 45, 3, 12};

using Dense = std::vector<std::vector<double>>;  // by diagonal

// y_o = sum_g rot_g( sum_{i,b} rot_{-g}(diagonal) rot_b(x_i) ), as the plan says.
std::vector<double> simulate(const BsgsPlan& plan, std::size_t output,
                             const std::vector<std::vector<double>>& x,
                             const std::vector<std::map<int, std::vector<double>>>& diagonals) {
  std::vector<double> y(plan.slots, 0.0);
  for (const auto& giant : plan.giants[output]) {
    std::vector<double> inner(plan.slots, 0.0);
    for (const auto& term : giant.terms) {
      const auto baby = rotate(x[term.input], plan.babies[term.input][term.baby]);
      const auto weight = rotate(diagonals[term.input].at(term.diagonal), -giant.rotation);
      for (std::size_t s = 0; s < plan.slots; ++s) inner[s] += weight[s] * baby[s];
    }
    const auto turned = rotate(inner, giant.rotation);
    for (std::size_t s = 0; s < plan.slots; ++s) y[s] += turned[s];
  }
  return y;
}

std::vector<std::vector<int>> shapes(std::size_t slots) {
  const auto s = static_cast<int>(slots);
  std::vector<int> all(slots);
  std::iota(all.begin(), all.end(), 0);
  return {all, {0}, {5}, {s - 1}, {0, 1, 2, s - 2, s - 1}, {0, 8, 16, 24, 32}, {3, 17, 40, s - 9},
          {}};
}

TEST(RotationPlan, EveryPlanIsTheSumOfDiagonals) {
  const auto params = make_params(kScheme);
  std::mt19937_64 random(jali::test::test_seed());
  std::uniform_real_distribution<double> uniform(-1, 1);
  const std::size_t slots = 64;
  const auto vector = [&] {
    std::vector<double> v(slots);
    for (double& e : v) e = uniform(random);
    return v;
  };
  for (const auto& first : shapes(slots)) {
    for (const auto& second : shapes(slots)) {
      const BlockDiagonals blocks{{first, second}, {second, {}}};
      for (Hoisting h : {Hoisting::automatic, Hoisting::single, Hoisting::twice}) {
        for (int step : {0, 1, 3, 8, 64}) {
          BsgsOptions options{.hoisting = h};
          if (step > 0) options.baby_step = step;
          const BsgsPlan plan = plan_bsgs(*params, 2, slots, blocks, options);
          EXPECT_EQ(plan.diagonal_count(), first.size() + 2 * second.size());
          EXPECT_NE(plan.hoisting, Hoisting::automatic);
          const std::vector<std::vector<double>> x{vector(), vector()};
          const auto needed = plan.rotations();
          for (std::size_t o = 0; o < 2; ++o) {
            std::vector<std::map<int, std::vector<double>>> diagonals(2);
            std::vector<double> expected(slots, 0.0);
            for (std::size_t i = 0; i < 2; ++i) {
              for (int d : blocks[o][i]) {
                const auto& entries = diagonals[i][d] = vector();
                const auto turned = rotate(x[i], d);
                for (std::size_t s = 0; s < slots; ++s) expected[s] += entries[s] * turned[s];
              }
            }
            const auto y = simulate(plan, o, x, diagonals);
            for (std::size_t s = 0; s < slots; ++s) ASSERT_NEAR(y[s], expected[s], 1e-12);
            for (const auto& giant : plan.giants[o])
              EXPECT_TRUE(giant.rotation == 0 ||
                          std::ranges::binary_search(needed, giant.rotation));
          }
          for (const auto& babies : plan.babies)
            for (int b : babies) EXPECT_TRUE(b == 0 || std::ranges::binary_search(needed, b));
        }
      }
    }
  }
}

TEST(RotationPlan, ADenseMatrixTakesFewKeySwitches) {
  const auto params = make_params(kScheme);
  const std::size_t slots = params->slots();
  std::vector<int> all(slots);
  std::iota(all.begin(), all.end(), 0);
  const BsgsPlan plan = plan_bsgs(*params, 3, slots, {{all}}, {.hoisting = Hoisting::twice});
  // With b baby steps there are b + slots/b key switches. For the best power of two b this is at
  // most 2 sqrt(2 slots).
  const double root = std::sqrt(static_cast<double>(slots));
  EXPECT_LE(static_cast<double>(plan.full_key_switches()), 2 * root);
  EXPECT_LE(static_cast<double>(plan.hoisted_key_switches() + plan.full_key_switches()), 6 * root);
  // Giant steps cost more than baby steps, so there are no more of them.
  EXPECT_LE(plan.full_key_switches(), plan.hoisted_key_switches());
}

TEST(RotationPlan, ABandNeedsNoGiantStep) {
  const auto params = make_params(kScheme);
  const BsgsPlan plan = plan_bsgs(*params, 3, 64, {{{0, 1, 2, 62, 63}}});
  EXPECT_EQ(plan.full_key_switches(), 0u);
  EXPECT_EQ(plan.rotations(), (std::vector<int>{-2, -1, 1, 2}));
}

TEST(RotationPlan, TheChosenStepIsTheCheapest) {
  const auto params = make_params(kScheme);
  std::vector<int> all(256);
  std::iota(all.begin(), all.end(), 0);
  const double chosen = plan_bsgs(*params, 2, 1024, {{all}}).cost;
  for (int step = 1; step <= 1024; step *= 2)
    EXPECT_LE(chosen, plan_bsgs(*params, 2, 1024, {{all}}, {.baby_step = step}).cost);
}

TEST(RotationPlan, RefusesWhatIsNoPlan) {
  const auto params = make_params(kScheme);
  EXPECT_THROW(plan_bsgs(*params, 2, 64, {}), InvalidArgument);
  EXPECT_THROW(plan_bsgs(*params, 2, 64, {{{64}}}), InvalidArgument);
  EXPECT_THROW(plan_bsgs(*params, 2, 64, {{{-1}}}), InvalidArgument);
  EXPECT_THROW(plan_bsgs(*params, 2, 64, {{{1}}}, {.baby_step = 0}), InvalidArgument);
  EXPECT_THROW(plan_bsgs(*params, 2, 64, {{{1}}, {{1}, {2}}}), InvalidArgument);
}

TEST(RotationPlan, SignedRotationsStayEqualModuloSlots) {
  for (long long r : {-130LL, -64LL, -33LL, -1LL, 0LL, 1LL, 31LL, 32LL, 33LL, 63LL, 64LL, 200LL}) {
    const int s = signed_rotation(r, 64);
    EXPECT_GT(s, -32);
    EXPECT_LE(s, 32);
    EXPECT_EQ(((r - s) % 64 + 64) % 64, 0);
  }
}

}  // namespace
}  // namespace jali::circuits::testing
