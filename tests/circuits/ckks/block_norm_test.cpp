// The largest singular value of a matrix of diagonals, against iterations on the dense matrix.
#include "jali/circuits/ckks/block_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <vector>

#include "../../seeded.h"

namespace jali::circuits {
namespace {

using Complex = std::complex<double>;
using Matrix = std::vector<std::vector<Complex>>;
constexpr std::size_t kSlots = 64;

Matrix matrix(const std::function<Complex(std::size_t, std::size_t)>& entry) {
  Matrix out(kSlots, std::vector<Complex>(kSlots));
  for (std::size_t r = 0; r < kSlots; ++r)
    for (std::size_t c = 0; c < kSlots; ++c) out[r][c] = entry(r, c);
  return out;
}

BlockNorm norm_of(const Matrix& m) {
  BlockNorm out(kSlots);
  for (std::size_t d = 0; d < kSlots; ++d) {
    std::vector<Complex> diagonal(kSlots);
    for (std::size_t s = 0; s < kSlots; ++s) diagonal[s] = m[s][(s + d) % kSlots];
    out.add(static_cast<int>(d), diagonal);
  }
  return out;
}

/// The square of the largest singular value, by iterations until nothing changes.
double largest(const Matrix& m, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<Complex> x(kSlots);
  for (auto& e : x) e = {normal(random), normal(random)};
  double out = 0;
  for (int k = 0; k < 4000; ++k) {
    std::vector<Complex> y(kSlots, 0.0), z(kSlots, 0.0);
    for (std::size_t r = 0; r < kSlots; ++r)
      for (std::size_t c = 0; c < kSlots; ++c) y[r] += m[r][c] * x[c];
    for (std::size_t r = 0; r < kSlots; ++r)
      for (std::size_t c = 0; c < kSlots; ++c) z[c] += std::conj(m[r][c]) * y[r];
    double before = 0, after = 0;
    for (std::size_t c = 0; c < kSlots; ++c) before += std::norm(x[c]), after += std::norm(z[c]);
    if (before == 0 || after == 0) return 0;
    out = std::sqrt(after / before);
    for (std::size_t c = 0; c < kSlots; ++c) x[c] = z[c] / std::sqrt(after);
  }
  return out;
}

TEST(BlockNorm, IsAtLeastTheLargestSingularValueAndHardlyMore) {
  std::mt19937_64 random(jali::test::test_seed());
  std::normal_distribution<double> normal;
  std::vector<Complex> u(kSlots), v(kSlots);
  for (auto& e : u) e = {normal(random), normal(random)};
  for (auto& e : v) e = {normal(random), normal(random)};
  const auto sign = [&] { return normal(random) < 0 ? -1.0 : 1.0; };
  const double turn = 2 * std::acos(-1.0) / kSlots;
  const std::vector<std::pair<const char*, Matrix>> cases{
      {"ones", matrix([](auto, auto) { return 1.0; })},
      {"identity", matrix([](auto r, auto c) { return r == c ? 1.0 : 0.0; })},
      {"one entry", matrix([](auto r, auto c) { return r == 3 && c == 60 ? 7.0 : 0.0; })},
      {"normal", matrix([&](auto, auto) { return normal(random); })},
      {"complex", matrix([&](auto, auto) { return Complex(normal(random), normal(random)); })},
      {"signs", matrix([&](auto, auto) { return sign(); })},
      {"rank one", matrix([&](auto r, auto c) { return u[r] * v[c]; })},
      {"rank one in noise", matrix([&](auto r, auto c) { return u[r] * v[c] + normal(random); })},
      {"few rows", matrix([&](auto r, auto) { return r < 5 ? normal(random) : 0.0; })},
      {"window", matrix([](auto r, auto c) { return (c - r) % kSlots < 8 ? 1.0 : 0.0; })},
      {"differences", matrix([](auto r, auto c) {
         return r == c ? 1.0 : (r + 1) % kSlots == c ? -1.0 : 0.0;
       })},
      {"Fourier",
       matrix([&](auto r, auto c) { return std::polar(1.0, turn * static_cast<double>(r * c)); })}};
  for (const auto& [name, m] : cases) {
    const BlockNorm block = norm_of(m);
    const double truth = largest(m, random);
    double squares = 0;
    for (const auto& row : m)
      for (const auto& e : row) squares += std::norm(e);
    EXPECT_NEAR(block.squares(), squares, 1e-9 * squares) << name;
    EXPECT_GT(block.largest(), 0.95 * truth) << name;
    EXPECT_LT(block.largest(), 1.6 * truth) << name;
  }
  EXPECT_EQ(BlockNorm(kSlots).largest(), 0);
}

// Nothing is kept of a large matrix; what holds is the bound by sums of rows and columns.
TEST(BlockNorm, OfManyEntriesIsABound) {
  constexpr std::size_t kMany = std::size_t{1} << 15;
  BlockNorm block(kMany);
  const std::vector<Complex> ones(kMany, 1.0);
  for (int d = 0; d < 160; ++d) block.add(d, ones);
  EXPECT_EQ(block.squares(), 160.0 * kMany);
  EXPECT_EQ(block.largest(), 160.0 * 160.0);
}

}  // namespace
}  // namespace jali::circuits
