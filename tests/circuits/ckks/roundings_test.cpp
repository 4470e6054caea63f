// Roundings of diagonals that are independent, equal, or equal in most coefficients.
#include "jali/circuits/ckks/roundings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

namespace jali::circuits {
namespace {

using Diagonal = std::vector<std::complex<double>>;
constexpr std::size_t kSlots = 512;
constexpr double kScale = 0x1p40;

Diagonal normal(std::mt19937_64& random) {
  std::normal_distribution<double> draw;
  Diagonal out(kSlots);
  for (auto& e : out) e = draw(random);
  return out;
}

double alike(const std::vector<Diagonal>& diagonals, std::size_t period = kSlots) {
  Roundings out(kSlots, period, kScale);
  for (const auto& d : diagonals) out.add(d);
  return out.alike();
}

TEST(Roundings, IndependentOnesAreHardlyAlike) {
  std::mt19937_64 random(1);
  for (const std::size_t period : {kSlots, kSlots / 8}) {
    std::vector<Diagonal> diagonals;
    for (int k = 0; k < 512; ++k) diagonals.push_back(normal(random));
    EXPECT_LT(alike(diagonals, period), 2);
  }
}

TEST(Roundings, EqualDiagonalsCountAsOftenAsThereAreOfThem) {
  std::mt19937_64 random(2);
  for (const std::size_t count : {2U, 40U, 64U, 300U}) {
    const double found = alike(std::vector<Diagonal>(count, normal(random)));
    EXPECT_GT(found, 0.6 * static_cast<double>(count));
    EXPECT_LT(found, 1.4 * static_cast<double>(count));
  }
}

TEST(Roundings, HalfOfThemEqualCountsHalfAsMuch) {
  std::mt19937_64 random(3);
  const Diagonal same = normal(random);
  std::vector<Diagonal> diagonals;
  for (int k = 0; k < 400; ++k) diagonals.push_back(k % 2 ? same : normal(random));
  EXPECT_GT(alike(diagonals),
            60);  // every fourth of 400 pairs is alike, and a sample finds more or fewer
  EXPECT_LT(alike(diagonals), 200);
}

TEST(Roundings, DifferencesThatRepeatLeaveMostRoundingsEqual) {
  std::mt19937_64 random(4);
  const Diagonal same = normal(random);
  std::vector<Diagonal> diagonals;
  for (std::size_t k = 0; k < 200; ++k) {
    const Diagonal other = normal(random);
    diagonals.push_back(same);
    // With a period of 8, only coefficients of orders that are multiples of N / 16 differ.
    for (std::size_t s = 0; s < kSlots; ++s) diagonals.back()[s] += other[s % 8];
  }
  EXPECT_GT(alike(diagonals), 150);
  EXPECT_LT(alike(diagonals), 250);
}

TEST(Roundings, FewDiagonalsSayNothing) {
  std::mt19937_64 random(5);
  EXPECT_EQ(alike({}), 1);
  EXPECT_EQ(alike({normal(random)}), 1);
  EXPECT_EQ(alike({Diagonal(kSlots, 1.0), Diagonal(kSlots, 1.0)}), 1);
}

}  // namespace
}  // namespace jali::circuits
