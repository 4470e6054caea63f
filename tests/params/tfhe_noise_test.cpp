// The noise formulas of TFHE against published parameter sets, and against variances measured with
// the oracle engine. Keys have exactly the mean share of set bits, so that few keys are needed. A
// variance that is measured from m independent values is off by sqrt(2/m) of itself; bounds are 6.5
// standard deviations, so that a test fails by chance less than once in 10^10 draws.
#include "jali/params/tfhe_noise.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "../backend/tfhe_support.h"
#include "failures.h"

namespace jali::tfhe {
namespace {

using backend::ConstLweView;
using backend::TfheConfig;
using backend::test::encrypt_lwe;
using backend::test::TfheNoise;
using backend::test::TfheSecret;
using backend::test::TorusBlock;
using backend::test::u32;
using backend::test::u64;

Literal published(std::size_t n, Gadget rotation, Gadget switching) {
  Literal out;
  out.n = LweDimension(n);
  out.k = GlweDimension(1);
  out.N = PolynomialSize(2048);
  out.rotation_gadget = rotation;
  out.switch_gadget = switching;
  out.lwe_noise_bits = 13;  // 2^45 of words of 64 bits
  out.glwe_noise_bits = 17;
  out.message_bits = out.carry_bits = 2;
  out.max_norm2 = 25;
  return out;
}

/// log2 of the failure as tfhe-rs's documentation computes it: the box is symmetric, the rounding
/// of the body counts as noise, and the error of the transform is nearly nothing.
double published_failure(const Literal& set, double rotation) {
  const NoiseModel noise(set);
  const double unit = 1.0 / 4096;
  const double variance =
      set.max_norm2 * rotation + noise.key_switch() + noise.modulus_switch() + unit * unit / 12;
  return log2_erfc(half_box(set) / std::sqrt(2 * variance));
}

// The sets of tfhe-rs for 2 bits of message and carry, and the failure that its documentation
// states for them.
TEST(TfheNoise, PublishedSetsHaveTheirPublishedFailure) {
  const Literal classic = published(918, {23, 1}, {4, 4});
  const RotationNoise noise = NoiseModel(classic).blind_rotation();
  EXPECT_NEAR(published_failure(classic, noise.key + noise.rounding), -129.6, 0.5);
  // What we add costs some bits: half a unit of the box, and a bound on the error of the transform.
  EXPECT_GT(log2_p_fail(classic), -129.6);
  EXPECT_LT(log2_p_fail(classic), -126.5);

  // Multi-bit with groups of 4. Its bundle has 2^g GGSW ciphertexts and no factor X^e - 1, so that
  // half the noise is left.
  const Literal multi = published(920, {22, 1}, {3, 5});
  const RotationNoise step = NoiseModel(multi).external_product(1);
  EXPECT_NEAR(published_failure(multi, 230 * (16 * step.key + step.rounding)), -134.3, 2.5);
}

TEST(TfheNoise, Log2ErfcAgreesWithLongDoubles) {
  for (double x = 0; x < 100; x += 0.37) {
    const long double erfc = std::erfc(static_cast<long double>(x));
    EXPECT_NEAR(log2_erfc(x), static_cast<double>(std::log2(erfc)), 1e-5) << x;
  }
}

// --- measured variances --------------------------------------------------------------------------

/// A mean square, and how many values it is of.
struct Measured {
  double sum = 0, count = 0;
  void add(double x) {
    sum += x * x;
    ++count;
  }
  double variance() const { return sum / count; }
};

/// `values`: as many of the measured values as count as independent.
void expect_near(const Measured& measured, double formula, double values) {
  const double share = 6.5 * std::sqrt(2 / values);
  ASSERT_LT(share, 0.35) << "the test measures too little";
  EXPECT_GT(measured.variance(), formula * (1 - share));
  EXPECT_LT(measured.variance(), formula * (1 + share));
}

/// Keys of exactly the mean weight, in random order. Every pattern of a multi-bit or block group
/// occurs equally often, for which the number of groups has to be a multiple of the number of
/// patterns.
TfheSecret balanced_secret(const TfheConfig& config, std::mt19937_64& rng) {
  TfheSecret out;
  out.large.resize(config.large().value);
  for (std::size_t i = 0; i < out.large.size(); i += 2) out.large[i] = 1;
  std::shuffle(out.large.begin(), out.large.end(), rng);
  const auto group = static_cast<std::size_t>(config.group);
  const bool blocks = config.rotation == Rotation::block_binary;
  const std::size_t patterns = blocks ? group + 1 : std::size_t{1} << group;
  std::vector<std::size_t> steps(config.steps());
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = i % patterns;
  std::shuffle(steps.begin(), steps.end(), rng);
  for (const std::size_t pattern : steps) {
    for (std::size_t j = 0; j < group; ++j) {
      out.small.push_back(blocks ? pattern == j + 1 : (pattern >> j) & 1);
    }
  }
  return out;
}

TfheConfig config_of(Rotation rotation, int group, std::size_t n, Torus torus, std::size_t k,
                     Gadget rotation_gadget, Gadget switch_gadget) {
  TfheConfig out;
  out.torus = torus;
  out.n = LweDimension(n);
  out.k = GlweDimension(k);
  out.N = PolynomialSize(256);
  out.rotation = rotation;
  out.group = group;
  out.rotation_gadget = rotation_gadget;
  out.switch_gadget = switch_gadget;
  out.mean_bit = rotation == Rotation::block_binary ? 1.0 / (group + 1) : 0.5;
  return out;
}

/// Keys with normal errors of the variances of TUniform(lwe_noise_bits) and
/// TUniform(glwe_noise_bits).
TfheNoise deviations(const TfheConfig& config, int lwe_noise_bits, int glwe_noise_bits) {
  const NoiseModel model(config, lwe_noise_bits, glwe_noise_bits);
  return {std::sqrt(model.fresh_large()), std::sqrt(model.fresh_small())};
}

TEST(TfheNoise, KeySwitchIsAsPredicted) {
  JALI_SEEDED(rng);
  // In the first the errors of the key dominate, in the second the rounding to 2 x 3 bits, in the
  // third both count.
  const struct {
    Torus torus;
    Gadget gadget;
    int noise_bits;
  } cases[] = {{Torus::t64, {5, 4}, 14}, {Torus::t64, {3, 2}, 2}, {Torus::t32, {4, 3}, 12}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.noise_bits);
    const TfheConfig config = config_of(Rotation::classic, 1, 24, c.torus, 1, {8, 2}, c.gadget);
    Measured measured;
    const int keys = 6;
    const std::size_t count = 300;
    for (int i = 0; i < keys; ++i) {
      const TfheSecret secret = balanced_secret(config, rng);
      const auto held =
          backend::test::standard_keys(rng, config, secret, deviations(config, c.noise_bits, 2));
      const auto engine = backend::make_ref_tfhe(config);
      const backend::test::TfheRunner run(*engine, held);
      const std::vector<u64> zeros(count);
      const TorusBlock in = encrypt_lwe(rng, c.torus, secret.large, zeros, 0);
      for (const u64 phase : lwe_phases(run.key_switch(in), secret.small)) {
        measured.add(backend::test::real(Torus::t32, phase));
      }
    }
    // The key's errors are the same in all ciphertexts of a key, so that no more of them count.
    const double errors = static_cast<double>(256 * c.gadget.levels * keys);
    expect_near(measured, NoiseModel(config, c.noise_bits, 2).key_switch(),
                1 / (1 / (keys * static_cast<double>(count)) + 1 / errors));
  }
}

/// The variance of the coefficients of rotated accumulators, which were uniform: one value for each
/// rotation.
std::vector<double> rotated(const TfheConfig& config, int glwe_noise_bits, int keys,
                            std::size_t count, std::mt19937_64& rng) {
  std::vector<double> out;
  const std::size_t N = config.N.value, n = config.n.value;
  for (int i = 0; i < keys; ++i) {
    const TfheSecret secret = balanced_secret(config, rng);
    const auto held =
        backend::test::standard_keys(rng, config, secret, deviations(config, 2, glwe_noise_bits));
    const auto engine = backend::make_ref_tfhe(config);
    const backend::test::TfheRunner run(*engine, held);
    const std::vector<u64> zeros(count);
    const TorusBlock in = encrypt_lwe(rng, Torus::t32, secret.small, zeros, 0.1);
    backend::test::Tables tables;
    tables.data = TorusBlock(config.torus, 1, N);
    for (std::size_t j = 0; j < N; ++j) tables.data.set(j, rng());
    const std::vector<u64> phases = glwe_phases(run.blind_rotate(in, tables), config, secret);
    std::vector<u32> row(n + 1), exponents(n + 1);
    for (std::size_t r = 0; r < count; ++r) {
      Measured measured;
      for (std::size_t j = 0; j <= n; ++j) row[j] = static_cast<u32>(in.at(r, j));
      backend::switched(exponents, row.data(), config, 0);
      u64 turn = 4 * N * n - exponents[n];  // X^(-b' + sum a' s)
      for (std::size_t j = 0; j < n; ++j) turn += exponents[j] * secret.small[j];
      for (std::size_t j = 0; j < N; ++j) {
        const std::size_t at = (j + turn) % (2 * N);
        const u64 value = tables.data.at(j), phase = phases[r * N + at % N];
        measured.add(backend::test::real(config.torus, at < N ? phase - value : phase + value));
      }
      out.push_back(measured.variance());
    }
  }
  return out;
}

TEST(TfheNoise, BlindRotationIsAsPredicted) {
  JALI_SEEDED(rng);
  const struct {
    Rotation rotation;
    int group;
    std::size_t n, k;
    Torus torus;
    Gadget gadget;
    int noise_bits, keys;
  } cases[] = {
      {Rotation::classic, 1, 16, 1, Torus::t64, {15, 2}, 30, 24},  // the key dominates
      {Rotation::classic, 1, 16, 1, Torus::t64, {10, 1}, 10, 24},  // the rounding
      {Rotation::classic, 1, 16, 2, Torus::t32, {5, 2}, 10, 24},
      {Rotation::multi_bit, 2, 16, 1, Torus::t64, {15, 2}, 30, 24},
      {Rotation::multi_bit, 3, 24, 1, Torus::t64, {10, 1}, 10, 24},
      {Rotation::block_binary, 2, 24, 1, Torus::t64, {15, 2}, 30, 24},
      {Rotation::block_binary, 3, 24, 1, Torus::t64, {10, 1}, 10, 120},  // few roundings, each
                                                                         // counts
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::to_string(static_cast<int>(c.rotation)) + ", group " +
                 std::to_string(c.group) + ", levels " + std::to_string(c.gadget.levels));
    const TfheConfig config = config_of(c.rotation, c.group, c.n, c.torus, c.k, c.gadget, {4, 3});
    const std::vector<double> measured = rotated(config, c.noise_bits, c.keys, 2, rng);
    const RotationNoise formula = NoiseModel(config, 2, c.noise_bits).blind_rotation();
    // The oracle's products are exact. The first step finds a table whose mask is 0, so that only
    // its body counts.
    const double steps = static_cast<double>(config.steps());
    const double mask = static_cast<double>(c.k) / static_cast<double>(c.k + 1);
    const double predicted =
        formula.key * (steps - mask) / steps + formula.rounding * (steps - 1) / steps;
    // Coefficients of one rotation are not independent, because all go through the same secret. So
    // the rotations, which are, say themselves how exact their mean is; a normal number exceeds 6.5
    // standard errors less than once in 10^10.
    double mean = 0, square = 0;
    const double count = static_cast<double>(measured.size());
    for (const double x : measured) mean += x / count;
    for (const double x : measured) square += (x - mean) * (x - mean) / (count - 1);
    const double error = std::sqrt(square / count);
    EXPECT_LT(error, 0.12 * predicted) << "the test measures too little";
    EXPECT_NEAR(mean, predicted, 6.5 * error);
  }
}

TEST(TfheNoise, ModulusSwitchIsAsPredicted) {
  JALI_SEEDED(rng);
  const struct {
    Rotation rotation;
    int group;
    std::size_t n;
    int log_many;
    bool compensated;
  } cases[] = {{Rotation::classic, 1, 100, 0, true},
               {Rotation::classic, 1, 100, 0, false},
               {Rotation::classic, 1, 60, 2, true},
               {Rotation::block_binary, 3, 120, 0, true}};
  for (const auto& c : cases) {
    SCOPED_TRACE(std::to_string(c.group) + ", " + std::to_string(c.log_many));
    TfheConfig config = config_of(c.rotation, c.group, c.n, Torus::t64, 1, {8, 2}, {4, 3});
    const NoiseModel model(config, 2, 2);
    if (!c.compensated) config.mean_bit = 0;
    const TfheSecret secret = balanced_secret(config, rng);
    Measured measured;
    double mean = 0;
    std::vector<u32> row(c.n + 1), exponents(c.n + 1);
    const int count = 20000;
    for (int r = 0; r < count; ++r) {
      u32 phase = static_cast<u32>(rng());
      row[c.n] = phase;
      for (std::size_t j = 0; j < c.n; ++j) {
        row[j] = static_cast<u32>(rng());
        if (secret.small[j] != 0) row[c.n] += row[j];
      }
      backend::switched(exponents, row.data(), config, c.log_many);
      u32 switched = exponents[c.n] << 23;  // 2N = 2^9
      for (std::size_t j = 0; j < c.n; ++j) {
        if (secret.small[j] != 0) switched -= exponents[j] << 23;
      }
      const double error = backend::test::real(Torus::t32, u32{switched - phase});
      measured.add(error);
      mean += error;
    }
    const double unit = std::ldexp(1.0, c.log_many - 9);
    const double formula = model.modulus_switch(c.log_many, c.compensated) + unit * unit / 12;
    expect_near(measured, formula, count);
    EXPECT_LT(std::fabs(mean / count), 6.5 * std::sqrt(formula / count));
  }
}

// The errors of a packing, without the rest of the ciphertexts: digits are those of uniform words.
TEST(TfheNoise, PackingIsAsPredicted) {
  JALI_SEEDED(rng);
  const Gadget gadget{6, 2};
  const std::size_t from = 64, count = 12, N = 256;
  const TfheConfig config = config_of(Rotation::classic, 1, 16, Torus::t64, 1, {8, 2}, {4, 3});
  const NoiseModel model(config, 2, 48);
  std::normal_distribution<double> normal(0, std::sqrt(model.fresh_large()));
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  std::uniform_int_distribution<int> digit(-32, 31);
  Measured measured;
  for (int i = 0; i < 120; ++i) {
    std::vector<double> sum(N), error(N);
    for (std::size_t row = 0; row < from; ++row) {
      for (int level = 0; level < gadget.levels; ++level) {
        for (double& x : error) x = normal(rng);
        for (std::size_t c = 0; c < count; ++c) {
          const double d = digit(rng);
          for (std::size_t j = 0; j < N; ++j) sum[(c + j) % N] += (c + j < N ? d : -d) * error[j];
        }
      }
      if (row % 2 == 0) continue;
      for (std::size_t c = 0; c < count; ++c) sum[c] += std::ldexp(uniform(rng), -12);
    }
    for (std::size_t c = 0; c < count; ++c) measured.add(sum[c]);
  }
  expect_near(measured, model.packing(gadget, LweDimension(from), 0.5, count), measured.count);
}

// --- the transform -------------------------------------------------------------------------------

using Complex = std::complex<double>;

/// exp(i pi j / n), rounded once.
Complex root_of_unity(std::int64_t j, std::size_t n) {
  const long double angle =
      std::numbers::pi_v<long double> * static_cast<long double>(j) / static_cast<long double>(n);
  return {static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle))};
}
Complex twist(std::size_t j, std::size_t N) {
  return root_of_unity(static_cast<std::int64_t>(j), N);
}

/// The folded transform: x_i + i x_(i+M), twisted by exp(i pi j / N), through a radix-2 transform
/// of M = N/2 points.
void transform(std::vector<Complex>& x, int sign) {
  const std::size_t M = x.size();
  for (std::size_t i = 1, j = 0; i < M; ++i) {
    std::size_t bit = M >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::size_t half = 1; half < M; half *= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      const Complex root = root_of_unity(sign * static_cast<std::int64_t>(j), half);
      for (std::size_t i = j; i < M; i += 2 * half) {
        const Complex a = x[i], b = x[i + half] * root;
        x[i] = a + b;
        x[i + half] = a - b;
      }
    }
  }
}

TEST(TfheNoise, TransformErrorIsBoundedAndNotFarBelow) {
  JALI_SEEDED(rng);
  __extension__ using Wide = __int128;
  for (const std::size_t N : {std::size_t{512}, std::size_t{2048}}) {
    SCOPED_TRACE(N);
    const std::size_t M = N / 2;
    Measured measured;
    std::vector<std::int64_t> digits(N), key(N);
    for (auto& d : digits) d = static_cast<std::int64_t>(rng() >> 42) - (1 << 21);
    for (auto& x : key) x = static_cast<std::int64_t>(rng());
    std::vector<Complex> a(M), b(M);
    for (std::size_t j = 0; j < M; ++j) {
      a[j] =
          Complex(static_cast<double>(digits[j]), static_cast<double>(digits[j + M])) * twist(j, N);
      b[j] = Complex(static_cast<double>(key[j]), static_cast<double>(key[j + M])) * twist(j, N);
    }
    transform(a, 1);
    transform(b, 1);
    for (std::size_t j = 0; j < M; ++j) a[j] *= b[j];
    transform(a, -1);
    for (std::size_t j = 0; j < M; ++j) {
      a[j] = a[j] * std::conj(twist(j, N)) / static_cast<double>(M);
    }
    for (std::size_t j = 0; j < N; ++j) {
      Wide exact = 0;
      for (std::size_t i = 0; i <= j; ++i) exact += static_cast<Wide>(digits[i]) * key[j - i];
      for (std::size_t i = j + 1; i < N; ++i)
        exact -= static_cast<Wide>(digits[i]) * key[j + N - i];
      const double have = j < M ? a[j].real() : a[j - M].imag();
      measured.add(static_cast<double>(static_cast<Wide>(have) - exact));
    }
    // Digits of 22 bits, key words of 64.
    const double product = static_cast<double>(N) * std::exp2(2 * 22 + 2 * 64) / 144;
    const double share = measured.variance() / (product * std::exp2(-106));
    EXPECT_LT(share, transform_error(PolynomialSize(N)));
    EXPECT_GT(share, transform_error(PolynomialSize(N)) / 10);
  }
}

// --- failures ------------------------------------------------------------------------------------

// The amplification: noise so large that some percent of the phases leave their box, counted behind
// the oracle's key switch and modulus switch. The formula has to give their number. It maps back to
// the noise of the presets as far as the phase is normal out to 13 standard deviations, which no
// count can show: it is a sum of hundreds of independent bounded terms, whose tails are lighter
// than normal.
TEST(TfheNoise, AmplifiedFailuresAreAsPredicted) {
  JALI_SEEDED(rng);
  const double half_box = 1.0 / 16;
  const TfheConfig config = config_of(Rotation::classic, 1, 48, Torus::t64, 1, {8, 2}, {4, 4});
  // The errors of the input count as those of bootstrapped ciphertexts.
  const int lwe_noise_bits = 20;
  const NoiseModel model(config, lwe_noise_bits, 10);
  const double bootstrapped = model.blind_rotation().total();
  const double norm2 = 3e-4 / bootstrapped;
  jali::test::Failures found;
  for (int i = 0; i < 8; ++i) {
    const TfheSecret secret = balanced_secret(config, rng);
    const auto held =
        backend::test::standard_keys(rng, config, secret, deviations(config, lwe_noise_bits, 10));
    const auto engine = backend::make_ref_tfhe(config);
    const backend::test::TfheRunner run(*engine, held);
    const std::vector<u64> zeros(1500);
    const TorusBlock in =
        encrypt_lwe(rng, Torus::t64, secret.large, zeros, std::sqrt(norm2 * bootstrapped));
    const TorusBlock small = run.key_switch(in);
    std::vector<u32> row(config.n.value + 1), exponents(config.n.value + 1);
    for (std::size_t r = 0; r < zeros.size(); ++r) {
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = static_cast<u32>(small.at(r, j));
      backend::switched(exponents, row.data(), config, 0);
      u32 exponent = exponents[config.n.value];
      for (std::size_t j = 0; j < config.n.value; ++j) exponent -= exponents[j] * secret.small[j];
      // The box of 0: [-32, 32) of 512.
      found.failed += ((exponent + 32) & 511) >= 64;
      ++found.count;
    }
  }
  found.predicted = found.least =
      found.count * std::exp2(model.log2_p_fail(Order::switch_first, norm2, half_box));
  // At 2 to 3 standard deviations a share x more variance gives about 3x more failures. The
  // variance varies with the key's 8 * 1024 errors by sqrt(2 / 8192), which is 1.6 percent.
  found.expect_as_predicted(0.05);
}

TEST(TfheNoise, LargestNormIsWhereTheFailureIs) {
  const NoiseModel model(published(918, {23, 1}, {4, 4}));
  for (const int log_many : {0, 1}) {
    const double bits = log_many == 0 ? -100 : -20;
    const double norm2 = model.largest_norm2(Order::switch_first, bits, 1.0 / 64, log_many);
    EXPECT_NEAR(model.log2_p_fail(Order::switch_first, norm2, 1.0 / 64, log_many), bits, 1e-6);
  }
  EXPECT_EQ(model.largest_norm2(Order::switch_first, -300, 1.0 / 64), 0);
}

// Averaged over the weights of keys, some more than with the mean weight, and less than if all
// blocks were set.
TEST(TfheNoise, BlockKeysAreAveragedOverTheirWeights) {
  Literal set = published(840, {23, 1}, {3, 6});
  set.rotation = Rotation::block_binary;
  set.group = 3;
  const NoiseModel model(set);
  const double have = log2_p_fail(set);
  const double unit = 1.0 / 4096;
  const auto tails = [&](double sum) {  // sum of (s_i - 1/4)^2
    const double rest = model.before_rotation(set.order, set.max_norm2) - model.modulus_switch();
    const double scale = std::sqrt(2 * (rest + unit * unit / 12 * sum));
    return std::log2(std::erfc((1.0 / 64 - unit / 2) / scale) +
                     std::erfc((1.0 / 64 + unit / 2) / scale)) -
           1;
  };
  EXPECT_GT(have, tails(840 * 3.0 / 16));
  EXPECT_LT(have, tails(840 * 3.0 / 16) + 6);
  EXPECT_LT(have, tails(280 * 9.0 / 16 + 560 * 1.0 / 16));
}

}  // namespace
}  // namespace jali::tfhe
