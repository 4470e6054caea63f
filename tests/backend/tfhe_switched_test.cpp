// The modulus switch, against exact arithmetic and by what it is for: the variance and the mean of
// the switched phase.
#include "tfhe_compare.h"

namespace jali::backend::test {
namespace {

__extension__ using i128 = __int128;

TfheConfig config_of(std::size_t n, std::size_t N, double mean) {
  TfheConfig config;
  config.n = LweDimension(n);
  config.N = PolynomialSize(N);
  config.mean_bit = mean;
  return config;
}

i128 floored(i128 a, i128 b) { return a / b - (a % b < 0); }  // b > 0

TEST(TfheSwitched, IsTheFormula) {
  JALI_SEEDED(rng);
  for (int repeat = 0; repeat < 400; ++repeat) {
    const std::size_t n = 1 + rng() % 700, log_n = 8 + rng() % 9, N = std::size_t{1} << log_n;
    const double means[] = {0.5, 0.25, 1.0 / 3, 1.0 / 6, 1.0 / 9, 0, 1};
    const TfheConfig config = config_of(n, N, means[rng() % 7]);
    const int log_many = static_cast<int>(rng() % (log_n + 1));
    SCOPED_TRACE(describe(config) + ", mean " + std::to_string(config.mean_bit) + ", log_many " +
                 std::to_string(log_many));
    std::vector<u32> in(n + 1), out(n + 1);
    for (u32& x : in) x = static_cast<u32>(rng() % 2 ? rng() : detail::edge_word(rng, 32));
    switched(out, in.data(), config, log_many);

    const i128 order = 2 * N, many = i128{1} << log_many, t = (i128{1} << 32) / order * many;
    const auto times_many = [&](i128 x) {
      return static_cast<u32>(((x * many) % order + order) % order);
    };
    i128 sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const i128 nearest = floored(2 * i128{in[i]} + t, 2 * t);
      sum += i128{in[i]} - nearest * t;
      ASSERT_EQ(out[i], times_many(nearest)) << "word " << i;
    }
    // mean * sum as a fraction of 2^60: exact. A double is off by less than 2^-20 of the whole.
    const i128 one = i128{1} << 60,
               product = sum * static_cast<i128>(std::ldexp(config.mean_bit, 60));
    const i128 slack = one >> 16;
    const i128 low = floored(product - slack + one / 2, one);
    const i128 high = floored(product + slack + one / 2, one);
    const u32 at_low = times_many(floored(2 * (i128{in[n]} - low) + t, 2 * t));
    const u32 at_high = times_many(floored(2 * (i128{in[n]} - high) + t, 2 * t));
    ASSERT_TRUE(out[n] == at_low || out[n] == at_high) << out[n];
  }
}

TEST(TfheSwitched, ByHand) {
  // N = 256: t = 2^23. The mask's errors are 2^22 - 2^23, 2^22 - 1 and -1: their sum is -2, and
  // half of it -1.
  const u32 tie = u32{1} << 22;
  const std::vector<u32> in{tie, tie - 1, 0xFFFFFFFFu, tie - 1};
  std::vector<u32> out(4);
  switched(out, in.data(), config_of(3, 256, 0.5), 0);
  EXPECT_EQ(out, (std::vector<u32>{1, 0, 0, 1}));  // the compensation lifts the body to the tie
  switched(out, in.data(), config_of(3, 256, 0), 0);
  EXPECT_EQ(out, (std::vector<u32>{1, 0, 0, 0}));
  // log_many 2: t = 2^25, and results are multiples of 4.
  const std::vector<u32> coarse{u32{3} << 23, u32{5} << 23, u32{511} << 23, u32{7} << 23};
  switched(out, coarse.data(), config_of(3, 256, 0), 2);
  EXPECT_EQ(out, (std::vector<u32>{4, 4, 0, 8}));
}

TEST(TfheSwitched, ARoundedMeanOfHalfGoesUp) {
  // One mask word with the error 1 or -1: half of it is 1/2, which goes to 1, or -1/2, which goes
  // to 0.
  const u32 tie = u32{1} << 22;
  std::vector<u32> out(2);
  const std::vector<u32> above{1, tie}, below{0xFFFFFFFFu, tie};
  switched(out, above.data(), config_of(1, 256, 0.5), 0);
  EXPECT_EQ(out, (std::vector<u32>{0, 0}));
  switched(out, below.data(), config_of(1, 256, 0.5), 0);
  EXPECT_EQ(out, (std::vector<u32>{0, 1}));
}

struct Errors {
  double mean, variance;
};

/// The error of the switched phase in units of t, over fresh secrets and masks.
Errors measured(std::mt19937_64& rng, const TfheConfig& config, int samples) {
  const double t = std::ldexp(1.0, 32) / static_cast<double>(2 * config.N.value);
  const std::vector<u64> zero{0};
  std::vector<u32> out(config.n.value + 1);
  double sum = 0, squares = 0;
  for (int i = 0; i < samples; ++i) {
    const TfheSecret secret = random_secret(config, rng);
    const TorusBlock in = encrypt_lwe(rng, Torus::t32, secret.small, zero, 0);
    switched(out, static_cast<const u32*>(in.data()), config, 0);
    u32 phase = out[config.n.value];
    for (std::size_t j = 0; j < config.n.value; ++j) phase -= secret.small[j] ? out[j] : 0;
    const u32 word = phase * static_cast<u32>(t);  // of a phase that was 0
    const double error = static_cast<double>(static_cast<std::int32_t>(word)) / t;
    sum += error;
    squares += error * error;
  }
  const double mean = sum / samples;
  return {mean, squares / samples - mean * mean};
}

// 4000 samples: a variance is off by a factor of 1 + 6.5 sqrt(2 / 4000) = 1.15 with probability
// below 10^-10.
TEST(TfheSwitched, TheCompensationLowersTheVariance) {
  JALI_SEEDED(rng);
  struct Kind {
    Rotation rotation;
    int group;
    double mean;
  };
  for (const Kind& kind : {Kind{Rotation::classic, 1, 0.5}, Kind{Rotation::block_binary, 3, 0.25},
                           Kind{Rotation::block_binary, 2, 1.0 / 3}}) {
    TfheConfig config = config_of(300, 1024, kind.mean);
    config.rotation = kind.rotation;
    config.group = kind.group;
    config.k = GlweDimension(1);
    SCOPED_TRACE(describe(config));
    const Errors with = measured(rng, config, 4000);
    config.mean_bit = 0;
    const Errors without = measured(rng, config, 4000);
    // Each rounding has the variance 1/12. Without compensation the mask's are weighted by the mean
    // of s_i^2, which is that of s_i, and with it by the variance of s_i.
    const double n = 300, mean = kind.mean;
    const double raw = (1 + n * mean) / 12, compensated = (1 + n * mean * (1 - mean)) / 12;
    EXPECT_LT(without.variance, 1.15 * raw);
    EXPECT_GT(without.variance, raw / 1.15);
    EXPECT_LT(with.variance, 1.15 * compensated);
    EXPECT_GT(with.variance, compensated / 1.15);
    EXPECT_LT(std::abs(with.mean), 6.5 * std::sqrt(compensated / 4000));
  }
}

}  // namespace
}  // namespace jali::backend::test
