// Polynomials whose coefficients and values are numbers modulo t: the tree of powers knows no
// scheme, and gives the value of the polynomial with the levels and products that it promises.
#include "jali/circuits/common/power_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "../../seeded.h"

namespace jali::circuits {
namespace {

/// A number modulo 65537.
struct Residue {
  static constexpr std::uint64_t kT = 65537;
  std::uint64_t v = 0;
  bool operator==(const Residue&) const = default;
  Residue operator+(Residue b) const { return {(v + b.v) % kT}; }
  Residue operator-(Residue b) const { return {(v + kT - b.v) % kT}; }
  Residue operator*(Residue b) const { return {v * b.v % kT}; }
  Residue& operator+=(Residue b) { return *this = *this + b; }
  Residue& operator-=(Residue b) { return *this = *this - b; }
};

/// The value, and the depth of each power and node, which must be that of its tree.
Residue value_of(const PowerTree<Residue>& tree, Basis basis, Residue x) {
  std::map<std::size_t, Residue> power{{0, {1}}, {1, x}};
  std::map<std::size_t, int> depth{{0, 0}, {1, 0}};
  for (const auto& p : tree.powers()) {
    Residue made = power.at(p.high) * power.at(p.low);
    if (basis == Basis::chebyshev) made = made + made - power.at(p.high - p.low);
    power[p.index] = made;
    depth[p.index] = std::max(depth.at(p.high), depth.at(p.low)) + 1;
  }
  std::vector<Residue> value;
  for (const auto& node : tree.nodes()) {
    Residue sum{};
    for (const auto& [i, a] : node.terms) {
      sum += a * power.at(i);
      EXPECT_LE(i == 0 ? 0 : depth.at(i) + 1, node.depth);
    }
    for (const auto& [giant, child] : node.products) {
      sum += value.at(child) * power.at(giant);
      EXPECT_LT(tree.nodes()[child].depth, node.depth);
      EXPECT_LT(depth.at(giant), node.depth);
    }
    value.push_back(sum);
  }
  return value.back();
}

TEST(PowerTree, GivesTheValueOfThePolynomialInBothBases) {
  JALI_SEEDED(random);
  for (const std::size_t degree : {1U, 2U, 3U, 7U, 8U, 30U, 63U, 100U}) {
    std::vector<Residue> p(degree + 1);
    for (auto& a : p) a = {random() % Residue::kT};
    p.back() = {1 + random() % (Residue::kT - 1)};
    const Residue x{random() % Residue::kT};
    for (const Basis basis : {Basis::power, Basis::chebyshev}) {
      const PowerTree<Residue> tree(p, basis);
      // x^i, or T_i = 2 x T_{i-1} - T_{i-2}
      Residue expected{}, before{}, now{1};
      for (std::size_t i = 0; i <= degree; ++i) {
        expected += p[i] * now;
        const Residue once = x * now;
        const Residue next = basis == Basis::power || i == 0 ? once : once + once - before;
        before = now;
        now = next;
      }
      EXPECT_EQ(value_of(tree, basis, x), expected) << "degree " << degree;
      EXPECT_EQ(tree.nodes().back().depth, depth_of_degree(degree));
    }
  }
}

TEST(PowerTree, TakesAboutTwiceTheRootOfTheDegreeInProducts) {
  for (const std::size_t degree : {15U, 63U, 255U}) {
    const PowerTree<Residue> tree(std::vector<Residue>(degree + 1, Residue{1}), Basis::power);
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(degree + 1)));
    EXPECT_LE(tree.multiplications(),
              2 * root + 2 * static_cast<std::size_t>(depth_of_degree(degree)));
    EXPECT_LE(tree.relinearisations(), tree.multiplications());
  }
}

TEST(PowerTree, OfAConstantTakesNothing) {
  for (const std::vector<Residue>& p : {std::vector<Residue>{{5}}, {{5}, {0}, {0}}}) {
    const PowerTree<Residue> tree(p, Basis::power);
    EXPECT_TRUE(tree.powers().empty());
    EXPECT_TRUE(tree.nodes().empty());
  }
}

}  // namespace
}  // namespace jali::circuits
