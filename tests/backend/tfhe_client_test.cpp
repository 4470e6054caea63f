// Operations under a secret key: the oracle by the definitions of torus.h, and the CPU engine by
// the oracle.
#include <gtest/gtest.h>

#include "../lwe/phases.h"
#include "jali/base/error.h"
#include "tfhe_client_compare.h"

namespace jali::backend::test {
namespace {

using jali::test::expect_tuniform;
using jali::test::glwe_phase;
using jali::test::lwe_phase;

TEST(TfheClient, LweCiphertextsHoldTheirMessagesAndTheNoiseOfTheirParameters) {
  JALI_SEEDED(rng);
  const auto engine = make_ref_tfhe_client(small_configs(rng)[0]);
  const ClientRunner runner(*engine);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const int bits : {0, 3, 17}) {
      const std::size_t count = 4000, n = 57;
      Bits secret(n);
      for (auto& bit : secret) bit = rng() >> 63;
      std::vector<u64> messages(count);
      for (u64& m : messages) m = rng();
      const OwnDraws draws(rng);
      const TorusBlock bodies = runner.encrypt_bodies(torus, secret, messages, draws.of(bits));
      const TorusBlock rows = runner.expand(bodies, LweDimension(n), draws.masks, draws.first);
      const TorusBlock phases = runner.phases(rows, secret);
      std::vector<std::int64_t> noise;
      for (std::size_t i = 0; i < count; ++i) {
        const u64 phase = lwe_phase(rows.lwe(), i, secret);
        ASSERT_EQ(phases.at(i), torus == Torus::t64 ? phase : static_cast<u32>(phase));
        noise.push_back(centred(torus, phase - messages[i]));
      }
      expect_tuniform(noise, bits);
      // The mask is that of the seed, and no two rows share one.
      random::Prng prng(draws.masks, draws.first + 7);
      std::vector<std::uint8_t> mask(n * torus_bytes(torus));
      prng.fill(mask);
      const auto* row =
          static_cast<const std::uint8_t*>(rows.data()) + 7 * (n + 1) * torus_bytes(torus);
      EXPECT_EQ(std::memcmp(mask.data(), row, mask.size()), 0);
      EXPECT_NE(std::memcmp(row, row + (n + 1) * torus_bytes(torus), mask.size()), 0);
    }
  }
}

TEST(TfheClient, GadgetRowsHoldTheirBitsAndTheNoise) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    if (config.N.value > 512) continue;
    SCOPED_TRACE(describe(config));
    const auto engine = make_ref_tfhe_client(config);
    const ClientRunner runner(*engine);
    const std::size_t N = config.N.value, k = config.k.value;
    const std::size_t levels = static_cast<std::size_t>(config.rotation_gadget.levels);
    Bits secret(k * N);
    for (auto& bit : secret) bit = rng() >> 63;
    const Bits bits{1, 0, 1};
    const int noise_bits = 9;
    std::vector<std::int64_t> noise;
    for (const bool ggsw : {true, false}) {
      const std::size_t count = bits.size() * (ggsw ? k + 1 : 1) * levels;
      OwnDraws draws(rng);
      draws.first = 0;
      const TorusBlock bodies =
          runner.encrypt_gadget(count, secret, bits, ggsw, draws.of(noise_bits));
      TorusBlock rows(config.torus, count, (k + 1) * N);
      const std::size_t body = N * torus_bytes(config.torus);
      expand_rows(rows.data(), draws.masks, 0, bodies.data(), k * body, body, count);
      std::size_t row = 0;
      for (const std::uint8_t m : bits) {
        for (std::size_t c = ggsw ? 0 : k; c <= k; ++c) {
          for (std::size_t j = 1; j <= levels; ++j, ++row) {
            const auto phase = glwe_phase(rows.data(), config.torus, k, N, row, secret);
            const int shift =
                torus_bits(config.torus) - static_cast<int>(j) * config.rotation_gadget.base_log;
            for (std::size_t t = 0; t < N; ++t) {
              // -m S_c 2^(w - j g), or m 2^(w - j g)
              const u64 bit = c < k ? m & secret[c * N + t] : t == 0 ? m : 0;
              const u64 message = c < k ? 0 - (bit << shift) : bit << shift;
              noise.push_back(centred(config.torus, phase[t] - message));
            }
          }
        }
      }
      ASSERT_EQ(row, count);
    }
    expect_tuniform(noise, noise_bits);
  }
}

TEST(TfheClient, TheCpuAgreesWithTheOracle) {
  JALI_SEEDED(rng);
  for (TfheConfig config : small_configs(rng)) {
    config.threads = 1 + static_cast<int>(rng() % 3);
    const auto ref = make_ref_tfhe_client(config);
    compare_clients(*make_cpu_tfhe_client(config), *ref, rng);
  }
}

TEST(TfheClient, RefusesWhatIsWrong) {
  JALI_SEEDED(rng);
  const TfheConfig config = small_configs(rng)[0];
  const OwnDraws own(rng);
  const Bits secret(config.large().value);
  std::vector<u64> words(config.N.value);
  const LweDimension one(1);
  for (const auto& engine : {make_ref_tfhe_client(config), make_cpu_tfhe_client(config)}) {
    const auto bodies = [&](void* out, std::size_t count, LweDimension n, int noise_bits) {
      engine->encrypt_bodies(out, count, Torus::t64, n, secret.data(), words.data(),
                             own.of(noise_bits));
    };
    u64 out = 0;
    EXPECT_NO_THROW(bodies(&out, 1, one, 62));
    EXPECT_THROW(bodies(&out, 1, one, 63), InvalidArgument);
    EXPECT_THROW(bodies(&out, 1, one, -1), InvalidArgument);
    EXPECT_THROW(bodies(&out, 0, one, 1), InvalidArgument);
    EXPECT_THROW(bodies(nullptr, 1, one, 1), InvalidArgument);
    EXPECT_THROW(bodies(&out, 1, LweDimension(0), 1), InvalidArgument);
    const auto gadget = [&](std::size_t count, const std::uint8_t* bits, int noise_bits) {
      engine->encrypt_gadget(words.data(), count, secret.data(), {bits, true}, own.of(noise_bits));
    };
    EXPECT_THROW(gadget(0, secret.data(), 1), InvalidArgument);
    EXPECT_THROW(gadget(1, nullptr, 1), InvalidArgument);
    EXPECT_THROW(gadget(1, secret.data(), 63), InvalidArgument);
    EXPECT_THROW(engine->expand({words.data(), Torus::t64, one, 1}, nullptr, own.masks, 0),
                 InvalidArgument);
    EXPECT_THROW(engine->phases(nullptr, {words.data(), Torus::t64, one, 1}, secret.data()),
                 InvalidArgument);
    EXPECT_THROW(engine->phases(&out, {words.data(), Torus::t64, one, 0}, secret.data()),
                 InvalidArgument);
  }
  EXPECT_THROW(make_cpu_tfhe_client(config, nullptr), InvalidArgument);
  EXPECT_THROW(make_tfhe_client_engine(config, "gpu"), InvalidArgument);
  EXPECT_EQ(make_tfhe_client_engine(config, "cpu")->name(), "cpu");
  EXPECT_EQ(make_tfhe_client_engine(config, "ref")->name(), "ref");
}

}  // namespace
}  // namespace jali::backend::test
