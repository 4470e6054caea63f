#include "jali/circuits/ckks/dft.h"

#include <bit>
#include <numbers>

#include "../../seeded.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

std::size_t reversed(std::size_t k, int bits) {
  std::size_t r = 0;
  for (int i = 0; i < bits; ++i) r |= ((k >> i) & 1) << (bits - 1 - i);
  return r;
}

/// z_j = sum_k w_k exp(2 pi i 5^j k / (4 n)), computed by this definition.
std::vector<Complex> plain_dft(const std::vector<Complex>& w) {
  const std::size_t n = w.size();
  std::vector<Complex> z(n);
  std::size_t power = 1;
  for (std::size_t j = 0; j < n; ++j, power = power * 5 % (4 * n)) {
    for (std::size_t k = 0; k < n; ++k) {
      const double turn = static_cast<double>(power * k % (4 * n)) / static_cast<double>(4 * n);
      z[j] += w[k] * std::polar(1.0, 2 * std::numbers::pi * turn);
    }
  }
  return z;
}

std::vector<Complex> bit_reversed(const std::vector<Complex>& w) {
  std::vector<Complex> out(w.size());
  const int bits = std::countr_zero(w.size());
  for (std::size_t k = 0; k < w.size(); ++k) out[reversed(k, bits)] = w[k];
  return out;
}

std::vector<Complex> apply_clear(const std::vector<Diagonals>& matrices, std::vector<Complex> x) {
  for (const auto& m : matrices) {
    std::vector<Complex> y(x.size(), 0.0);
    for (const auto& [d, entries] : m) {
      const auto turned = rotate(x, d);
      for (std::size_t s = 0; s < x.size(); ++s) y[s] += entries[s] * turned[s];
    }
    x = std::move(y);
  }
  return x;
}

std::vector<Complex> random_vector(std::mt19937_64& random, std::size_t n) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Complex> v(n);
  for (auto& z : v) z = {uniform(random), uniform(random)};
  return v;
}

std::vector<Complex> times(std::vector<Complex> x, double factor) {
  for (auto& z : x) z *= factor;
  return x;
}

TEST(Dft, MatricesAreTheDftInEveryBudget) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  for (int log_slots = 0; log_slots <= 8; ++log_slots) {
    const auto w = random_vector(random, std::size_t{1} << log_slots);
    const auto z = plain_dft(w);
    for (int levels = 1; levels <= std::max(log_slots, 1); ++levels) {
      for (double factor : {1.0, 0.03}) {
        const auto forward = dft_matrices(Dft::slots_to_coefficients, log_slots, levels, factor);
        const auto backward = dft_matrices(Dft::coefficients_to_slots, log_slots, levels, factor);
        EXPECT_EQ(forward.size(), static_cast<std::size_t>(levels));
        EXPECT_EQ(backward.size(), static_cast<std::size_t>(levels));
        const double scale = std::ldexp(1, log_slots);
        EXPECT_LT(jali::testing::max_error(apply_clear(forward, bit_reversed(w)), times(z, factor)),
                  1e-13 * scale)
            << log_slots << " " << levels << " seed " << seed;
        EXPECT_LT(
            jali::testing::max_error(apply_clear(backward, z), times(bit_reversed(w), factor)),
            1e-13 * scale)
            << log_slots << " " << levels << " seed " << seed;
      }
    }
  }
}

// The butterflies of the stage with the widest stride wrap around n slots. The matrix of k stages
// among which it is has 2^k diagonals instead of 2^(k+1) - 1, and it gets the larger share of the
// stages.
TEST(Dft, MatricesHaveFewDiagonals) {
  const auto counts = [](Dft direction, int log_slots, int levels) {
    std::vector<std::size_t> out;
    for (const auto& m : dft_matrices(direction, log_slots, levels)) out.push_back(m.size());
    return out;
  };
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(counts(Dft::coefficients_to_slots, 7, 2), (Counts{16, 15}));
  EXPECT_EQ(counts(Dft::slots_to_coefficients, 7, 2), (Counts{15, 16}));
  EXPECT_EQ(counts(Dft::coefficients_to_slots, 11, 4), (Counts{8, 15, 15, 7}));
  EXPECT_EQ(counts(Dft::slots_to_coefficients, 11, 4), (Counts{7, 15, 15, 8}));
}

TEST(Dft, DiagonalsAreKnownWithoutMatrices) {
  for (const Dft direction : {Dft::slots_to_coefficients, Dft::coefficients_to_slots}) {
    for (int log_slots = 1; log_slots <= 7; ++log_slots) {
      for (int levels = 1; levels <= std::min(log_slots, 4); ++levels) {
        std::vector<std::vector<int>> expected;
        for (const auto& m : dft_matrices(direction, log_slots, levels)) {
          auto& indices = expected.emplace_back();
          for (const auto& [d, entries] : m) indices.push_back(d);
        }
        EXPECT_EQ(dft_diagonals(direction, log_slots, levels), expected);
      }
    }
  }
}

TEST(Dft, RefusesWhatItCannotDo) {
  EXPECT_THROW(dft_matrices(Dft::slots_to_coefficients, 5, 6), InvalidArgument);
  EXPECT_THROW(dft_matrices(Dft::slots_to_coefficients, 5, 0), InvalidArgument);
  EXPECT_THROW(dft_matrices(Dft::slots_to_coefficients, 5, 2, 0.0), InvalidArgument);
  const auto params = make_params(words(2)[0]);
  EXPECT_THROW(HomomorphicDft(params, Dft::slots_to_coefficients, {.levels = 3}), DepthExhausted);
  EXPECT_THROW(HomomorphicDft(params, Dft::slots_to_coefficients,
                              {.levels = 2, .log_slots = 9, .side_by_side = true}),
               InvalidArgument);
}

class HomomorphicDfts : public ::testing::TestWithParam<Scheme> {};

// Each direction by itself leaves the plain transform in the slots, at every packing and with
// several budgets of levels.
TEST_P(HomomorphicDfts, IsThePlainDft) {
  const Scheme& scheme = GetParam();
  const auto params = make_params(scheme);
  const int full = params->log_n() - 1;
  for (const auto& [log_slots, levels] :
       {std::pair{full, 3}, {full, 2}, {full, 1}, {5, 2}, {1, 1}, {0, 1}}) {
    for (const Dft direction : {Dft::slots_to_coefficients, Dft::coefficients_to_slots}) {
      const bool forward = direction == Dft::slots_to_coefficients;
      const std::size_t n = std::size_t{1} << log_slots;
      const double factor = forward ? 1 / std::sqrt(static_cast<double>(n)) : 1;
      HomomorphicDft dft(params, direction,
                         {.levels = levels, .log_slots = log_slots, .factor = factor});
      World world(scheme, dft.rotations());
      if (levels == 3) dft.prepare(world.encoder());
      const auto w = world.vector(1, n);
      const auto z = times(plain_dft(w), 1 / std::sqrt(static_cast<double>(n)));
      const auto input = forward ? bit_reversed(w) : z;
      const auto expected =
          forward ? z : times(bit_reversed(w), 1 / std::sqrt(static_cast<double>(n)));
      const auto y = dft.apply(*world.evaluator, world.encrypt(input, -1, log_slots));
      EXPECT_EQ(y.level, dft.output_level());
      EXPECT_EQ(y.scale, params->scale(y.level));
      expect_near(world, y, expected,
                  scheme.label + " slots 2^" + std::to_string(log_slots) + " levels " +
                      std::to_string(levels));
    }
  }
}

// With sparse packing the real and imaginary parts are put side by side into twice the slots, and
// back.
TEST_P(HomomorphicDfts, SideBySide) {
  const Scheme& scheme = GetParam();
  const auto params = make_params(scheme);
  for (const auto& [log_slots, levels] :
       {std::pair{params->log_n() - 2, 2}, {5, 2}, {5, 1}, {1, 1}, {0, 1}}) {
    const std::size_t n = std::size_t{1} << log_slots;
    const auto label = scheme.label + " slots 2^" + std::to_string(log_slots);
    DftOptions options{.levels = levels, .log_slots = log_slots, .side_by_side = true};
    HomomorphicDft down(params, Dft::coefficients_to_slots, options);
    options.factor = 1 / std::sqrt(static_cast<double>(n));
    HomomorphicDft up(params, Dft::slots_to_coefficients, options);
    auto rotations = down.rotations();
    for (int r : up.rotations()) rotations.push_back(r);
    World world(scheme, rotations);
    const auto w = world.vector(1, n);
    const auto z = plain_dft(w);
    std::vector<Complex> twice(times(z, options.factor)), parts(2 * n);
    twice.insert(twice.end(), twice.begin(), twice.end());
    const auto order = bit_reversed(w);
    for (std::size_t k = 0; k < n; ++k) {
      parts[k] = order[k].real();
      parts[k + n] = order[k].imag();
    }
    auto t = down.apply(*world.evaluator, world.encrypt(twice, -1, log_slots + 1));
    world.evaluator->add_inplace(t, world.evaluator->conjugate(t));
    expect_near(world, t, times(parts, options.factor), label);
    const auto y = up.apply(*world.evaluator, world.encrypt(parts, -1, log_slots + 1));
    expect_near(world, y, twice, label);
  }
}

INSTANTIATE_TEST_SUITE_P(Words, HomomorphicDfts, ::testing::ValuesIn(words(3)),
                         [](const auto& test_info) { return test_info.param.label; });

}  // namespace
}  // namespace jali::circuits::testing
