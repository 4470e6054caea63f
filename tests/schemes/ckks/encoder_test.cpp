// Compares the encoder with the definition of the canonical embedding.
#include <numbers>

#include "fixture.h"

namespace jali::testing {
namespace {

class EncoderTest : public ::testing::TestWithParam<Scheme> {};

// m(zeta^(5^j)) by Horner's rule, where zeta = exp(i pi / N).
Complex evaluate(const std::vector<double>& m, std::size_t n, std::size_t j) {
  std::size_t exponent = 1;
  for (std::size_t k = 0; k < j; ++k) exponent = exponent * 5 % (2 * n);
  Complex sum = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double angle =
        std::numbers::pi * static_cast<double>(exponent * k % (2 * n)) / static_cast<double>(n);
    sum += m[k] * Complex(std::cos(angle), std::sin(angle));
  }
  return sum;
}

TEST_P(EncoderTest, SlotsAreTheEvaluationsAtPowersOfFive) {
  World w(GetParam(), {});
  const std::size_t n = w.params->n();
  for (const int log_slots : {0, 3, w.params->log_n() - 1}) {
    const std::size_t slots = std::size_t{1} << log_slots;
    const auto z = w.vector(1, slots);
    const double scale = w.params->scale(1);
    const auto plain = w.encoder().encode(z, 1, 1, scale, log_slots);
    ring::Poly poly = w.ring->copy(plain.poly);
    w.ring->to_coeff(poly);
    const auto m = ring::to_doubles(*w.ring, poly, scale);
    for (const std::size_t j : {std::size_t{0}, slots / 2, slots - 1, n / 2 - 1}) {
      EXPECT_LT(std::abs(evaluate(m, n, j) - z[j % slots]), 2 * static_cast<double>(n) / scale)
          << "slot " << j << " of " << slots << ", seed " << w.seed;
    }
    EXPECT_LT(max_error(w.encoder().decode(plain), z), 2 * static_cast<double>(n) / scale);
  }
}

TEST_P(EncoderTest, RoundTripsEveryLevelAndBatch) {
  World w(GetParam(), {});
  for (int level = 0; level <= w.params->depth(); ++level) {
    const auto z = w.vector(1, 3 * 16);
    const double scale = w.params->scale(level);
    const auto back = w.encoder().decode(w.encoder().encode(z, 3, level, scale, 4));
    EXPECT_LT(max_error(back, z), 64 / scale) << "level " << level << ", seed " << w.seed;
  }
}

TEST_P(EncoderTest, PadsWithZeros) {
  World w(GetParam(), {});
  const std::vector<double> z{1.5, -2.25, 3};
  const auto back =
      w.encoder().decode(w.encoder().encode(std::span<const double>(z), 1, 0, w.params->scale(0)));
  ASSERT_EQ(back.size(), w.params->slots());
  for (std::size_t j = 0; j < back.size(); ++j) {
    EXPECT_NEAR(back[j].real(), j < 3 ? z[j] : 0, 1e-4);
    EXPECT_NEAR(back[j].imag(), 0, 1e-4);
  }
}

TEST_P(EncoderTest, BigScalesGoThroughDoubles) {
  World w(GetParam(), {});
  const int top = w.params->depth();
  const double scale = std::exp2(w.params->level(top).log_q - 6);  // beyond 64-bit integers
  const auto z = w.vector();
  EXPECT_LT(max_error(w.encoder().decode(w.encoder().encode(z, 1, top, scale)), z), 1e-12);
}

TEST_P(EncoderTest, RefusesWhatItCannotHold) {
  World w(GetParam(), {});
  const double scale = w.params->scale(0);
  const auto encode = [&](std::vector<Complex> z, int level, double s, int log_slots) {
    return w.encoder().encode(z, 1, level, s, log_slots);
  };
  EXPECT_THROW(encode(std::vector<Complex>(w.params->slots() + 1), 0, scale, -1), InvalidArgument);
  EXPECT_THROW(encode({1, 2, 3}, 0, scale, 1), InvalidArgument);
  EXPECT_THROW(encode({NAN}, 0, scale, 2), InvalidArgument);
  const std::vector<Complex> none;  // 2^31 vectors of none would be terabytes of zeros
  EXPECT_THROW(w.encoder().encode(none, std::size_t{1} << 31, 0, scale, 2), InvalidArgument);
  EXPECT_NO_THROW(w.encoder().encode(none, 1, 0, scale, 2));
  EXPECT_THROW(encode({Complex(0, INFINITY)}, 0, scale, 2), InvalidArgument);
  EXPECT_THROW(encode({1e9}, 0, scale, 2), InvalidArgument);
  EXPECT_THROW(encode({1}, w.params->depth() + 1, scale, 2), InvalidArgument);
  EXPECT_THROW(encode({1}, -1, scale, 2), InvalidArgument);
  EXPECT_THROW(encode({1}, 0, -1, 2), InvalidArgument);
  const double most = std::exp2(w.params->level(0).log_q + 64);  // the most that a loader accepts
  EXPECT_NO_THROW(encode({1e-30}, 0, most * 0.99, 2));
  EXPECT_NO_THROW(encode({1}, 0, 0x1p-64, 2));
  for (const double bad : {most * 1.01, 0x1p-65, 5e-324, double(INFINITY), double(NAN)}) {
    EXPECT_THROW(encode({1e-30}, 0, bad, 2), InvalidArgument) << bad;
  }
  EXPECT_THROW(encode({1}, 0, scale, w.params->log_n()), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Setups, EncoderTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
