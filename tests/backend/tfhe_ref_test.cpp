// The oracle of TFHE, against phases computed from the secret and against arithmetic of 128 bits.
#include "tfhe_compare.h"

namespace jali::backend::test {
namespace {

__extension__ using i128 = __int128;

/// The oracle with keys.
struct Oracle {
  Oracle(std::mt19937_64& rng, const TfheConfig& of, TfheNoise noise)
      : config(of),
        secret(random_secret(config, rng)),
        keys(standard_keys(rng, config, secret, noise)),
        ops(make_ref_tfhe(config)),
        run(*ops, keys) {}

  const TfheConfig config;
  const TfheSecret secret;
  const TfheKeys keys;
  const std::unique_ptr<TfheOps> ops;
  const TfheRunner run;
};

TEST(TfheRef, BootstrapsGiveEveryValueOfEveryTable) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    SCOPED_TRACE(describe(config));
    const Oracle oracle(rng, config, small_noise(config.torus));
    const u64 p = 4;
    const detail::Inputs inputs(rng, config, oracle.secret, p, 0);
    const std::vector<Functions> f{random_functions(rng, p, 0)};
    const Tables tables = clear_tables(config, p, 0, f);
    const detail::Way& way = detail::kWays[rng() % 3];
    const TorusBlock out =
        (oracle.run.*way.run)(way.small_in ? inputs.small : inputs.large, tables);
    detail::expect_values(way, oracle.secret, out, inputs, tables, f, p);
  }
}

/// Gadgets that hold a whole word decompose without an error.
TfheConfig complete(TfheConfig config) {
  config.N = PolynomialSize(256);
  config.rotation_gadget = {16, torus_bits(config.torus) / 16};
  config.switch_gadget = {8, 4};
  return config;
}

// With complete gadgets and keys without noise, all that is left is the rounding of the modulus
// switch, which `switched` gives: the result's phase is X^(-p') times the table in every bit of
// every coefficient.
TEST(TfheRef, RotationsWithoutNoiseAreExact) {
  JALI_SEEDED(rng);
  for (const TfheConfig& small : small_configs(rng)) {
    if (small.k.value > 2) continue;
    const TfheConfig config = complete(small);
    const std::size_t N = config.N.value;
    SCOPED_TRACE(describe(config));
    const Oracle oracle(rng, config, {});
    const std::size_t inputs = 2;
    const TorusBlock in = detail::random_words(rng, Torus::t32, inputs, config.n.value + 1);
    Tables clear;
    clear.data = detail::random_words(rng, config.torus, 3, N);
    clear.log_many = static_cast<int>(rng() % 9);
    clear.of_input = {static_cast<u32>(rng() % 3), static_cast<u32>(rng() % 3)};
    const Tables tables =
        rng() % 2 ? encrypted_tables(rng, config, oracle.secret, clear, 0) : clear;
    const std::vector<u64> phases =
        glwe_phases(oracle.run.blind_rotate(in, tables), config, oracle.secret);
    const std::vector<u64> results =
        lwe_phases(oracle.run.bootstrap(in, tables), oracle.secret.large);
    const std::size_t many = std::size_t{1} << clear.log_many;
    ASSERT_EQ(results.size(), inputs * many);
    for (std::size_t r = 0; r < inputs; ++r) {
      const u32* ciphertext = static_cast<const u32*>(in.data()) + r * in.row();
      const std::vector<u64> want = detail::rotated_table(
          config, oracle.secret, ciphertext, clear.data, clear.of_input[r], clear.log_many);
      const u64 mask = config.torus == Torus::t32 ? 0xFFFFFFFFu : ~u64{0};
      for (std::size_t i = 0; i < N; ++i) {
        ASSERT_EQ(phases[r * N + i], want[i] & mask) << "coefficient " << i;
      }
      for (std::size_t j = 0; j < many; ++j) {
        ASSERT_EQ(results[r * many + j], want[j] & mask) << "result " << j;
      }
    }
  }
}

// Half a turn more negates every result.
TEST(TfheRef, BootstrapsAreNegacyclic) {
  JALI_SEEDED(rng);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    const TfheConfig config = complete(
        small_config(rng, torus, Rotation::classic, 1, GlweDimension(1), 1, PolynomialSize(256)));
    const Oracle oracle(rng, config, {});
    TorusBlock in = detail::random_words(rng, Torus::t32, 2, config.n.value + 1);
    for (std::size_t i = 0; i < in.row(); ++i) in.set(1, i, in.at(0, i));
    in.set(1, config.n.value, in.at(0, config.n.value) + (u64{1} << 31));
    Tables tables;
    tables.data = detail::random_words(rng, torus, 1, config.N.value);
    const TorusBlock out = oracle.run.bootstrap(in, tables);
    const std::vector<u64> phases = lwe_phases(out, oracle.secret.large);
    EXPECT_EQ(centred(torus, phases[0] + phases[1]), 0);
  }
}

TEST(TfheRef, CompositionsAreTheirParts) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    if (config.N.value > 256 || config.k.value > 2) continue;
    SCOPED_TRACE(describe(config));
    const Oracle oracle(rng, config, small_noise(config.torus));
    const TfheRunner& run = oracle.run;
    Tables tables;
    tables.data = detail::random_words(rng, config.torus, 1, config.N.value);
    tables.log_many = 1;
    const TorusBlock large = detail::random_words(rng, config.torus, 2, config.large().value + 1);
    EXPECT_TRUE(
        same(run.switch_bootstrap(large, tables), run.bootstrap(run.key_switch(large), tables)));
    const TorusBlock small = detail::random_words(rng, Torus::t32, 2, config.n.value + 1);
    const TorusBlock out = run.bootstrap(small, tables);
    EXPECT_TRUE(same(run.bootstrap_switch(small, tables), run.key_switch(out)));
    EXPECT_TRUE(
        same(out, run.extract(run.blind_rotate(small, tables), std::vector<u32>{0, 1, 0, 1}, 2)));
  }
}

TEST(TfheRef, ExtractionsHaveThePhasesOfTheirCoefficients) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    SCOPED_TRACE(describe(config));
    const std::size_t N = config.N.value;
    const TfheSecret secret = random_secret(config, rng);
    const auto ops = make_ref_tfhe(config);
    const TorusBlock in = detail::random_words(rng, config.torus, 2, (config.k.value + 1) * N);
    const std::vector<u64> want = glwe_phases(in, config, secret);
    std::vector<u32> all(2 * N);
    for (std::size_t i = 0; i < 2 * N; ++i) all[i] = static_cast<u32>(i % N);
    TorusBlock out(config.torus, 2 * N, config.large().value + 1);
    ops->extract(out.lwe(), in.glwe(), all, N);
    EXPECT_EQ(lwe_phases(out, secret.large), want);
  }
}

// With keys without noise the phase of the result is b' - sum_i s_i a'_i, with the words rounded to
// the gadget. So it is within half a unit for every bit that is set, and half of 2^-32 for the
// body.
TEST(TfheRef, KeySwitchesKeepPhases) {
  JALI_SEEDED(rng);
  for (TfheConfig config : small_configs(rng)) {
    if (rng() % 3 == 0) config.switch_gadget = {16, 2};  // complete
    SCOPED_TRACE(describe(config));
    const int w = torus_bits(config.torus);
    const int held = config.switch_gadget.levels * config.switch_gadget.base_log;
    const Oracle oracle(rng, config, {});
    const std::size_t large = config.large().value;
    TorusBlock in = detail::random_words(rng, config.torus, 3, large + 1);
    for (std::size_t i = 0; i <= large; ++i) in.set(1, i, detail::edge_word(rng, w));
    const std::vector<u64> before = lwe_phases(in, oracle.secret.large);
    const std::vector<u64> after = lwe_phases(oracle.run.key_switch(in), oracle.secret.small);
    const auto rounded = [&](u64 x, int bits) {  // to `bits` bits, as a word of 32
      const int unit = w - bits;
      if (unit > 0) x = (x + (u64{1} << (unit - 1))) >> unit;
      return static_cast<u32>(x << (32 - bits));
    };
    double set = 0;
    for (const auto bit : oracle.secret.large) set += bit;
    for (std::size_t r = 0; r < in.count(); ++r) {
      u32 want = rounded(in.at(r, large), 32);
      for (std::size_t i = 0; i < large; ++i) {
        if (oracle.secret.large[i] != 0) want -= rounded(in.at(r, i), held);
      }
      EXPECT_EQ(after[r], want);
      const double error = std::abs(real(Torus::t64, (after[r] << 32) - (before[r] << (64 - w))));
      EXPECT_LE(error, std::ldexp(1.0, -33) + set * std::ldexp(0.5, -held));
    }
  }
}

// The variance is that of k N l digits of variance (2^(2 g) + 2) / 12 times the key's noise, and of
// the roundings. Of 400 ciphertexts it is off by sqrt(2 / 400) = 7%, and the key's own noise, of at
// least 1024 rows, by 4.5%: so that a factor of 1.8 is more than 6 standard deviations.
TEST(TfheRef, KeySwitchesAddTheNoiseOfTheirKey) {
  JALI_SEEDED(rng);
  TfheConfig config =
      small_config(rng, Torus::t64, Rotation::classic, 1, GlweDimension(2), 1, PolynomialSize(256));
  config.switch_gadget = {5, 3};
  const double sigma = std::ldexp(1.0, -20);
  const Oracle oracle(rng, config, {0, sigma});
  const std::size_t count = 400;
  const TorusBlock in = detail::random_words(rng, config.torus, count, config.large().value + 1);
  const std::vector<u64> before = lwe_phases(in, oracle.secret.large);
  const std::vector<u64> after = lwe_phases(oracle.run.key_switch(in), oracle.secret.small);
  double squares = 0, set = 0;
  for (const auto bit : oracle.secret.large) set += bit;
  for (std::size_t r = 0; r < count; ++r) {
    const double error = real(Torus::t64, (after[r] << 32) - before[r]);
    squares += error * error;
  }
  const double digit = (std::ldexp(1.0, 2 * 5) + 2) / 12;
  const double want = static_cast<double>(config.large().value) * 3 * digit * sigma * sigma +
                      set * std::ldexp(1.0, -30) / 12;
  EXPECT_LT(squares / count, 1.8 * want);
  EXPECT_GT(squares / count, want / 1.8);
}

TEST(TfheRef, CombinationsAreSumsModuloTheTorus) {
  JALI_SEEDED(rng);
  const TfheConfig config =
      small_config(rng, Torus::t64, Rotation::classic, 1, GlweDimension(1), 1, PolynomialSize(256));
  const auto ops = make_ref_tfhe(config);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Torus torus = repeat % 2 ? Torus::t32 : Torus::t64;
    const std::size_t row = 1 + rng() % 50, inputs = 1 + rng() % 9, rows = 1 + rng() % 30;
    const TorusBlock in = detail::random_words(rng, torus, inputs, row);
    const detail::RandomCombination sum(rng, rows, inputs, rng() % 2);
    TorusBlock out(torus, rows, row);
    ops->combine(out.lwe(), in.lwe(), sum.view());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t m = 0; m < row; ++m) {
        // Of at most 5 products below 2^127 each modulo 2^64, the sum fits.
        const i128 modulus = i128{1} << torus_bits(torus);
        i128 want = m + 1 == row && !sum.constant.empty() ? i128{sum.constant[r]} % modulus : 0;
        for (std::size_t e = sum.begin[r]; e < sum.begin[r + 1]; ++e) {
          want += i128{sum.weight[e]} * i128{in.at(sum.column[e], m)} % modulus;
        }
        ASSERT_EQ(out.at(r, m), static_cast<u64>((want % modulus + modulus) % modulus))
            << "row " << r << ", word " << m;
      }
    }
  }
}

}  // namespace
}  // namespace jali::backend::test
