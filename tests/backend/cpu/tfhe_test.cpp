// The CPU engine of TFHE against the oracle.
#include <gtest/gtest.h>

#include <cmath>

#include "../tfhe_compare.h"
#include "jali/base/cpu_features.h"
#include "jali/base/error.h"

namespace jali::backend::test {
namespace {

std::vector<std::string> isas() {
  std::vector<std::string> out = {"portable"};
  if (cpu_features().avx2 && cpu_features().fma) out.emplace_back("avx2");
  if (cpu_features().avx512) out.emplace_back("avx512");
  return out;
}

/// The most that the standard deviation of the transforms' error may be, in a word of one step:
/// 2^-52 of the size of the sums, 2^(g-1) sqrt(P N) / 2 on the torus; twice that for each X^e - 1
/// of a sum over units; and the rounding to 32 bits.
double word_error(const TfheConfig& config) {
  const double terms = static_cast<double>(config.k.value + 1) * config.rotation_gadget.levels *
                       static_cast<double>(config.N.value);
  const double sums = std::ldexp(std::sqrt(terms), config.rotation_gadget.base_log - 2);
  const double units =
      config.rotation == Rotation::classic ? 1 : 2 * std::sqrt(static_cast<double>(config.units()));
  return std::ldexp(sums * units, -52) + (config.torus == Torus::t32 ? 0x1p-33 : 0);
}
/// The same in the phase, to which the errors of the mask add up where the secret is 1. Of the
/// small rings here, up to twice the mean of the secret.
double phase_error(const TfheConfig& config) {
  return word_error(config) * std::sqrt(1 + static_cast<double>(config.large().value));
}

class CpuTfhe : public testing::Test {
 protected:
  const u64 seed_ = jali::test::test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};

  void hold(TfheConfig config, const std::string& isa, const std::string& transform) {
    config.isa = isa;
    config.transform = transform;
    config.threads = 1 + static_cast<int>(rng_() % 3);
    const auto engine = make_cpu_tfhe(config);
    EXPECT_EQ(engine->name(), "cpu/" + isa);
    TfheExpectation expect;
    expect.exact = transform == "ntt";
    expect.product_error = expect.exact ? 0 : phase_error(config);
    expect.more = expect.exact ? 1 : 30;
    compare(*engine, *make_ref_tfhe(config), expect, rng_);
  }

  /// Keys of random words, which are the keys of no secret: products as large as any.
  struct Random {
    TorusBlock key, tables, in;
  };
  /// Accumulators of random words or, sparse, of a few words at random places, since the oracle's
  /// time grows with them. Some are words at which digits tie or carry.
  Random random_inputs(const TfheConfig& config, std::size_t count, bool sparse) {
    const std::size_t N = config.N.value, words = (config.k.value + 1) * N;
    Random r;
    r.key = detail::random_words(rng_, config.torus, config.steps() * config.units(),
                                 config.ggsw_words());
    r.tables = TorusBlock(config.torus, count, words);
    for (std::size_t i = 0; i < r.tables.size(); ++i) {
      u64 word = rng_() % 4 == 0 ? detail::edge_word(rng_, torus_bits(config.torus)) : rng_();
      if (sparse && rng_() % N >= 16) word = 0;
      r.tables.set(i, word);
    }
    r.in = detail::random_words(rng_, Torus::t32, count, config.n.value + 1);
    return r;
  }
  TorusBlock rotated(const TfheOps& engine, const Random& r) {
    const TfheConfig& config = engine.config();
    const auto memory = engine.device()->memory();
    const std::size_t bytes = engine.rotation_key_bytes();
    const std::shared_ptr<void> key(memory->allocate(bytes),
                                    [&](void* data) { memory->free(data, bytes); });
    engine.prepare_rotation_key(key.get(), r.key.data(), 0, config.steps());
    TorusBlock out(config.torus, r.in.count(), r.tables.row());
    TableView tables{r.tables.data(), r.tables.count(), true};
    std::vector<u32> of_input;
    for (std::size_t i = 0; i < r.in.count(); ++i) of_input.push_back(static_cast<u32>(i));
    tables.of_input = of_input;
    engine.blind_rotate(out.glwe(), r.in.lwe(), tables, key.get());
    return out;
  }

  TfheConfig one_step(Torus torus, std::size_t k, std::size_t N, Gadget gadget) {
    TfheConfig config;
    config.torus = torus;
    config.n = LweDimension(1);
    config.k = GlweDimension(k);
    config.N = PolynomialSize(N);
    config.rotation_gadget = gadget;
    config.switch_gadget = {4, 4};
    return config;
  }

  /// One step with a key and accumulators of random words: every word differs by little from the
  /// oracle's.
  void hold_step(TfheConfig config, bool sparse) {
    for (const std::string& isa : isas()) {
      config.isa = isa;
      config.transform = "fft";
      SCOPED_TRACE(isa + ": " + describe(config));
      const Random r = random_inputs(config, 3, sparse);
      const auto engine = make_cpu_tfhe(config);
      const auto ref = make_ref_tfhe(config);
      const TorusBlock have = rotated(*engine, r), want = rotated(*ref, r);
      double sum = 0, most = 0;
      for (std::size_t i = 0; i < have.size(); ++i) {
        const double error = real(config.torus, have.at(i) - want.at(i));
        sum += error * error;
        most = std::max(most, std::abs(error));
      }
      EXPECT_LE(std::sqrt(sum / static_cast<double>(have.size())), word_error(config));
      EXPECT_LE(most, 8 * word_error(config));
    }
  }
};

TEST_F(CpuTfhe, FourierAgreesWithTheOracle) {
  const std::vector<std::string> sets = isas();
  std::size_t i = rng_();
  for (const TfheConfig& config : small_configs(rng_)) hold(config, sets[i++ % sets.size()], "fft");
}

TEST_F(CpuTfhe, ExactTransformGivesTheOraclesBits) {
  const std::vector<std::string> sets = isas();
  const std::vector<TfheConfig> configs = small_configs(rng_);
  for (std::size_t i = rng_() % 3; i < configs.size(); i += 3) {
    hold(configs[i], sets[rng_() % sets.size()], "ntt");
  }
}

TEST_F(CpuTfhe, LongEveryInstructionSetAgreesWithTheOracle) {
  for (const std::string& isa : isas()) {
    for (const char* transform : {"fft", "ntt"}) {
      for (const TfheConfig& config : small_configs(rng_)) hold(config, isa, transform);
    }
  }
}

TEST_F(CpuTfhe, EverySizeOfTransform) {
  for (std::size_t N = 1 << 8; N <= 1 << 16; N *= 2) {
    hold_step(one_step(Torus::t64, 1, N, {23, 1}), N > 512);
    hold_step(one_step(Torus::t32, 1, N, {8, 2}), N > 512);
  }
}

TEST_F(CpuTfhe, EveryKindOfGadget) {
  for (const Gadget gadget : {Gadget{1, 1}, Gadget{31, 1}, Gadget{1, 5}, Gadget{26, 2},
                              Gadget{27, 2}, Gadget{13, 4}, Gadget{16, 4}, Gadget{1, 64}}) {
    hold_step(one_step(Torus::t64, 1, 256, gadget), true);
    if (gadget.base_log * gadget.levels <= 32) {
      hold_step(one_step(Torus::t32, 2, 256, gadget), true);
    }
  }
  hold_step(one_step(Torus::t32, 1, 512, {8, 4}), true);
  hold_step(one_step(Torus::t64, 16, 256, {10, 2}), true);
}

TEST_F(CpuTfhe, ExactTransformHoldsTheLargestProducts) {
  for (TfheConfig config :
       {one_step(Torus::t64, 1, 1 << 16, {31, 2}), one_step(Torus::t64, 16, 256, {16, 4}),
        one_step(Torus::t64, 1, 512, {1, 64}), one_step(Torus::t32, 3, 1024, {8, 4})}) {
    config.transform = "ntt";
    SCOPED_TRACE(describe(config));
    Random r = random_inputs(config, 2, true);
    for (std::size_t i = 0; i < r.key.size(); i += 3) {  // the most negative word
      r.key.set(i, u64{1} << (torus_bits(config.torus) - 1));
    }
    EXPECT_TRUE(same(rotated(*make_cpu_tfhe(config), r), rotated(*make_ref_tfhe(config), r)));
  }
}

TEST_F(CpuTfhe, BatchesAndThreadsChangeNoBit) {
  for (TfheConfig config : small_configs(rng_)) {
    SCOPED_TRACE(describe(config));
    const Random all = random_inputs(config, 41, false);
    config.threads = 3;
    const TorusBlock together = rotated(*make_cpu_tfhe(config), all);
    config.threads = 1;
    const auto engine = make_cpu_tfhe(config);
    for (const std::size_t i : {std::size_t{0}, std::size_t{40}, rng_() % 41}) {
      Random one{all.key, TorusBlock(config.torus, 1, all.tables.row()),
                 TorusBlock(Torus::t32, 1, all.in.row())};
      for (std::size_t j = 0; j < one.tables.size(); ++j) one.tables.set(j, all.tables.at(i, j));
      for (std::size_t j = 0; j < one.in.size(); ++j) one.in.set(j, all.in.at(i, j));
      const TorusBlock alone = rotated(*engine, one);
      for (std::size_t j = 0; j < alone.size(); ++j) ASSERT_EQ(alone.at(j), together.at(i, j));
    }
  }
}

TEST_F(CpuTfhe, RefusesWhatItCannotBe) {
  TfheConfig config = one_step(Torus::t64, 1, 256, {8, 2});
  EXPECT_THROW(make_cpu_tfhe(config, nullptr), InvalidArgument);
  config.isa = "sse9";
  EXPECT_THROW(make_cpu_tfhe(config), InvalidArgument);
  for (const char* isa : {"avx2", "avx512"}) {
    const std::vector<std::string> have = isas();
    if (std::find(have.begin(), have.end(), isa) != have.end()) continue;
    config.isa = isa;
    EXPECT_THROW(make_cpu_tfhe(config), Unsupported);
  }
}

}  // namespace
}  // namespace jali::backend::test
