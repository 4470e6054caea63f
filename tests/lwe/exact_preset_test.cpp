// A blind rotation by exact transforms through every step of the largest preset, whose key would
// take 13 GB at once.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "../seeded.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/params/tfhe_noise.h"
#include "jali/params/tfhe_presets.h"
#include "phases.h"

namespace jali::lwe {
namespace {

using Words = std::vector<std::uint64_t>;

// The rotation is cut: an engine for some steps rotates what the one before it left. Each takes a
// key of its own.
TEST(ExactPresetLong, RotatesThroughEveryStep) {
  JALI_SEEDED(rng);
  constexpr std::size_t kPart = 11, kSamples = 64;
  const ParamsPtr params = Params::create(tfhe::preset("message_4_carry_4"));
  const std::size_t n = params->n().value, N = params->N().value;
  ASSERT_EQ(n % kPart, 0U);
  ASSERT_EQ(params->torus(), Torus::t64);
  KeyGenerator generator(params, 2);
  const SecretKey secret = generator.secret_key();
  backend::TfheConfig config = params->config(2, {}, "ntt");
  config.n = LweDimension(kPart);
  const auto engine = backend::make_cpu_tfhe(config);
  device::Pool& pool = *engine->device()->pool();

  // A table of a random function of 8 bits, which nobody has encrypted, and a random exponent for
  // each step.
  Words table(N);
  const std::size_t box = N / params->value_modulus();
  for (std::size_t i = 0; i < N; ++i) {
    table[i] = i % box == 0 ? rng() % params->value_modulus() * params->step() : table[i - 1];
  }
  GlweBlock acc = make_glwe(pool, Torus::t64, params->k(), params->N(), 1),
            next = make_glwe(pool, Torus::t64, params->k(), params->N(), 1);
  std::memset(acc.data.data(), 0, acc.bytes());
  std::memcpy(static_cast<std::uint64_t*>(acc.data.data()) + params->k().value * N, table.data(),
              N * sizeof(table[0]));

  std::size_t turned = 0;  // the table is times X^turned
  device::Buffer key = pool.allocate(engine->rotation_key_bytes());
  const int unit = 32 - std::countr_zero(2 * N);
  for (std::size_t first = 0; first < n; first += kPart) {
    const auto bits = secret.small().subspan(first, kPart);
    const GgswBlock ggsws = expand(pool, generator.ggsw(secret, bits));
    engine->prepare_rotation_key(key.data(), ggsws.rows.data.data(), 0, kPart);
    std::vector<std::uint32_t> small(kPart + 1);
    for (std::size_t i = 0; i < kPart; ++i) {
      const auto exponent = static_cast<std::uint32_t>(rng() % (2 * N));
      small[i] = exponent << unit;
      if (bits[i] != 0) turned += exponent;
    }
    engine->blind_rotate(next.view(), {small.data(), Torus::t32, config.n, 1},
                         {acc.data.data(), 1, true, {}, 0}, key.data());
    std::swap(acc, next);
  }

  std::vector<std::uint32_t> where(kSamples);
  for (auto& at : where) at = static_cast<std::uint32_t>(rng() % N);
  LweBlock samples = make_lwe(pool, Torus::t64, params->large(), kSamples);
  engine->extract(samples.view(), acc.view(), where, kSamples);
  Words phase(kSamples);
  phases(phase, std::as_const(samples).view(), secret.large());
  double squares = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::size_t from = (where[i] + 2 * N - turned % (2 * N)) % (2 * N);
    const std::uint64_t want = from < N ? table[from] : 0 - table[from - N];
    const double error =
        std::ldexp(static_cast<double>(test::centred(phase[i] - want, Torus::t64)), -64);
    EXPECT_LT(std::abs(error), tfhe::half_box(params->literal())) << "coefficient " << where[i];
    squares += error * error;
  }
  // The mean square of 64 normal errors lies within these bounds with a probability above 1 - 1e-8.
  // There is no rounding of transforms.
  const tfhe::RotationNoise noise = tfhe::NoiseModel(params->literal()).blind_rotation();
  const double expected = noise.key + noise.rounding;
  EXPECT_GT(squares / kSamples, 0.2 * expected);
  EXPECT_LT(squares / kSamples, 2.5 * expected);
}

}  // namespace
}  // namespace jali::lwe
