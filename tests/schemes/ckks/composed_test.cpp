// Rotations without keys of their own are composed of the fewest that have keys, and are right.
#include "jali/schemes/ckks/composed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "fixture.h"

namespace jali::testing {
namespace {

using ckks::fewest_rotations;

std::size_t modulo(long long x, std::size_t slots) {
  const auto n = static_cast<long long>(slots);
  return static_cast<std::size_t>((x % n + n) % n);
}

// The number of non-zero digits of the non-adjacent form of x, which is the fewest powers of two
// with signs.
int weight(std::size_t x) {
  int out = 0;
  for (; x != 0; x >>= 1) {
    if ((x & 1) == 0) continue;
    ++out;
    if ((x & 3) == 3) ++x;
  }
  return out;
}

TEST(FewestRotations, OfPowersAreTheNonAdjacentForm) {
  for (const std::size_t slots : {2U, 8U, 64U, 512U}) {
    const auto powers = rlwe::power_rotations(slots);
    const auto digits = static_cast<std::size_t>(std::countr_zero(slots));
    EXPECT_EQ(powers.size(), 2 * digits - 1);
    for (std::size_t x = 0; x < slots; ++x) {
      const auto parts = fewest_rotations(static_cast<int>(x), powers, slots);
      EXPECT_EQ(modulo(std::accumulate(parts.begin(), parts.end(), 0LL), slots), x);
      // Modulo the slots, x may also be written as x - slots.
      EXPECT_EQ(static_cast<int>(parts.size()), std::min(weight(x), weight(slots - x)))
          << x << " of " << slots;
      EXPECT_LE(parts.size(), (digits + 1) / 2);
      EXPECT_EQ(fewest_rotations(static_cast<int>(x) - static_cast<int>(slots), powers, slots),
                parts);
    }
  }
}

TEST(FewestRotations, AreTheFewestOfAnyKeys) {
  const std::array<int, 3> keys = {1, -3, 20};
  // By hand: 17 = 20 - 3, 40 = 2 20, 21 = 20 + 1, -6 = 2 (-3).
  EXPECT_EQ(fewest_rotations(17, keys, 64).size(), 2u);
  EXPECT_EQ(fewest_rotations(40, keys, 64), (std::vector{20, 20}));
  EXPECT_EQ(fewest_rotations(21, keys, 64).size(), 2u);
  EXPECT_EQ(fewest_rotations(-6, keys, 64), (std::vector{-3, -3}));
  EXPECT_EQ(fewest_rotations(1, keys, 64), (std::vector{1}));
  EXPECT_TRUE(fewest_rotations(0, keys, 64).empty());
  EXPECT_TRUE(fewest_rotations(64, keys, 64).empty());
  // There are no ways, or none of at most log2(slots) rotations.
  EXPECT_TRUE(fewest_rotations(5, std::array{2, 4}, 64).empty());
  EXPECT_EQ(fewest_rotations(6, std::array{1}, 64).size(), 6u);
  EXPECT_TRUE(fewest_rotations(7, std::array{1}, 64).empty());
  EXPECT_TRUE(fewest_rotations(7, {}, 64).empty());
}

TEST(RotationSteps, InvertTheElement) {
  for (const std::size_t n : {8u, 1024u}) {
    const auto order = static_cast<int>(n / 2);
    for (int r = -order / 2 + 1; r <= order / 2; ++r) {
      EXPECT_EQ(ckks::rotation_steps(n, ring::galois_element(n, r)), r);
    }
    EXPECT_FALSE(ckks::rotation_steps(n, ring::conjugation_element(n)).has_value());
  }
}

TEST(KeyRotations, AreThoseOfTheirKind) {
  using rlwe::RotationKeys;
  const std::array<int, 2> wanted = {3, 6};
  EXPECT_EQ(rlwe::key_rotations(wanted, RotationKeys::each, 16), (std::vector{3, 6}));
  EXPECT_EQ(rlwe::key_rotations(wanted, RotationKeys::minimum, 16), (std::vector{1, 2, 4}));
  EXPECT_EQ(rlwe::key_rotations({}, RotationKeys::powers, 16),
            (std::vector{1, -1, 2, -2, 4, -4, 8}));
}

// The rotations of the ends of a tree, and of how many parts each is made.
struct Ends {
  std::vector<std::size_t> steps, parts;
};
Ends ends_of(const rlwe::RotationTree& tree, std::size_t slots) {
  Ends branches{{0}, {0}}, out;
  const auto follow = [&](const rlwe::RotationTree::Edge& edge, Ends& to) {
    const std::size_t by = modulo(edge.steps, slots);
    to.steps.push_back((branches.steps.at(edge.from) + by) % slots);
    to.parts.push_back(branches.parts.at(edge.from) + (by != 0 ? 1 : 0));
  };
  for (const auto& edge : tree.made) follow(edge, branches);
  for (const auto& edge : tree.ends) follow(edge, out);
  return out;
}

TEST(RotationTree, SharesParts) {
  // 101 .. 104 share the rotation by 100, and 203 the one by 200, of which 100 + 100 is none.
  const std::array<int, 6> keys = {1, 2, 3, 4, 100, 200};
  const std::array<int, 7> steps = {0, 3, 101, 102, 103, 104, 203};
  std::vector<std::vector<int>> compositions(2);
  for (std::size_t k = 2; k < steps.size(); ++k) {
    compositions.push_back(fewest_rotations(steps[k], keys, 512));
    EXPECT_EQ(compositions.back().size(), 2U);
  }
  const auto tree = rlwe::rotation_tree(steps, compositions, keys, 512);
  EXPECT_EQ(tree.made, (std::vector<rlwe::RotationTree::Edge>{{0, 100}, {0, 3}}));
  EXPECT_EQ(tree.ends, (std::vector<rlwe::RotationTree::Edge>{
                           {0, 0}, {0, 3}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 200}}));
}

TEST(RotationTree, MakesEveryRotationOfTheFewestParts) {
  JALI_SEEDED(random);
  for (int round = 0; round < 50; ++round) {
    const std::size_t slots = std::size_t{1} << (5 + random() % 7);
    std::vector<int> keys = rlwe::power_rotations(slots);
    std::ranges::shuffle(keys, random);
    keys.resize(std::max<std::size_t>(3, random() % keys.size()));
    std::vector<int> steps;
    std::vector<std::vector<int>> compositions;
    std::size_t alone = 0;  // branches if nothing is shared
    for (int k = 0; k < 40; ++k) {
      const int step = static_cast<int>(random() % slots);
      auto parts = fewest_rotations(step, keys, slots);
      if (step != 0 && parts.empty()) continue;
      if (parts.size() == 1) parts.clear();
      alone += parts.empty() ? 0 : parts.size() - 1;
      steps.push_back(step);
      compositions.push_back(std::move(parts));
    }
    const auto tree = rlwe::rotation_tree(steps, compositions, keys, slots);
    const Ends ends = ends_of(tree, slots);
    ASSERT_EQ(ends.steps.size(), steps.size());
    for (std::size_t k = 0; k < steps.size(); ++k) {
      EXPECT_EQ(ends.steps[k], modulo(steps[k], slots));
      const std::size_t parts = compositions[k].empty() ? steps[k] != 0 : compositions[k].size();
      EXPECT_EQ(ends.parts[k], parts);
    }
    EXPECT_LE(tree.made.size(), alone);
    for (const auto& edge : tree.made) EXPECT_TRUE(std::ranges::count(keys, edge.steps) > 0);
  }
}

class Composed : public ::testing::TestWithParam<Scheme> {
 protected:
  static std::vector<Complex> turned(std::vector<Complex> v, int steps) {
    const auto by = static_cast<std::ptrdiff_t>(modulo(steps, v.size()));
    std::rotate(v.begin(), v.begin() + by, v.end());
    return v;
  }
};

TEST_P(Composed, EveryRotationByPowers) {
  World w(GetParam(), rlwe::power_rotations(512));
  const auto v = w.vector();
  const auto x = w.encrypt(v);
  const auto& e = *w.evaluator;
  for (const int steps : {0, 1, -1, 3, 85, -171, 256, 300, 511, 512, 700}) {
    EXPECT_TRUE(e.can_rotate(steps, x.level));
    EXPECT_TRUE(ckks::can_rotate(*w.keys, steps));
    w.expect(ckks::composed_rotate(e, x, steps), turned(v, steps), 0.2);
    w.expect(w.automatic->rotate(x, steps), turned(v, steps), 0.2);
  }
  const ckks::Hoisted hoisted = e.hoist(x);
  for (const int steps : {0, 2, 3, -171}) {
    w.expect(e.reduce(ckks::composed_rotate_extended(e, hoisted, steps)), turned(v, steps), 0.2);
  }
}

TEST_P(Composed, SumsOfRotationsShareTheirBranches) {
  World w(GetParam(), rlwe::power_rotations(512));
  const auto& e = *w.evaluator;
  const int steps[] = {0, 1, 85, 3, 87};  // of which three are composed
  std::vector<ckks::Extended> operands;
  std::vector<Complex> want(512, 0.0);
  for (const int r : steps) {
    const auto v = w.vector(0.2);
    const auto term = turned(v, r);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += term[i];
    operands.push_back(e.extend(w.encrypt(v)));
  }
  const auto sum_of = [&](std::size_t at_a_time) {
    rlwe::RotatedSum<ckks::Evaluator> sum(e, steps, operands[0].level);
    for (std::size_t k = 0; k < operands.size(); k += at_a_time) {
      std::vector<const ckks::Extended*> some;
      for (std::size_t i = k; i < std::min(k + at_a_time, operands.size()); ++i) {
        some.push_back(&operands[i]);
      }
      sum.add(k, some);
    }
    return e.reduce(sum.take());
  };
  const auto one = sum_of(1), all = sum_of(5);
  w.expect(all, want, 0.2);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(std::memcmp(one.parts[c].data(), all.parts[c].data(), all.parts[c].bytes()), 0);
  }
}

TEST_P(Composed, OfTheKeysThatServeTheLevel) {
  World w(GetParam(), {});
  auto keys = std::make_shared<const rlwe::EvaluationKeys>(
      w.keygen->evaluation_keys(*w.sk, {{1, 0}, {5, -1}, {-2, -1}}, rlwe::kNoKey, rlwe::kNoKey));
  std::vector<std::pair<int, std::size_t>> told;
  const ckks::Evaluator e(w.params, w.ring, keys,
                          [&](int steps, std::size_t parts) { told.emplace_back(steps, parts); });
  const auto v = w.vector();
  const auto low = w.encrypt(v, 0), high = w.encrypt(v, 1);
  EXPECT_EQ(e.composition(6, 0).size(), 2u);  // 5 + 1
  EXPECT_EQ(e.composition(6, 1).size(), 4u);  // 5 + 5 - 2 - 2
  w.expect(ckks::composed_rotate(e, low, 6), turned(v, 6), 0.2);
  w.expect(ckks::composed_rotate(e, high, 6), turned(v, 6), 0.2);
  w.expect(ckks::composed_rotate(e, high, 5), turned(v, 5));
  // It tells of each composition once, and of none where a key serves.
  EXPECT_EQ(told, (std::vector<std::pair<int, std::size_t>>{{6, 2}, {6, 4}}));
  EXPECT_FALSE(e.has_rotation(6, 0));
  EXPECT_FALSE(e.can_rotate(200, 1));
  EXPECT_THROW(ckks::composed_rotate(e, high, 200), KeyMissing);
  EXPECT_FALSE(ckks::can_rotate(*keys, 200));
  EXPECT_TRUE(ckks::can_rotate(*keys, 6));
}

INSTANTIATE_TEST_SUITE_P(Setups, Composed, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
