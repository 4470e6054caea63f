// Ciphertexts packed into a polynomial: their phases, and the noise from both sides of its formula.
#include "jali/lwe/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "../seeded.h"
#include "../tfhe_literals.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/params/tfhe_noise.h"
#include "phases.h"

namespace jali::lwe {
namespace {

TEST(Packing, PutsCiphertextsIntoCoefficients) {
  JALI_SEEDED(rng);
  for (const tfhe::Order order : {tfhe::Order::switch_first, tfhe::Order::bootstrap_first}) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      test::TfheShape shape;
      shape.order = order;
      shape.torus = torus;
      shape.n = 40;
      shape.message_bits = 1;
      shape.carry_bits = 0;
      SCOPED_TRACE(test::name_of(shape));
      const ParamsPtr params = test::insecure_params(shape);
      const tfhe::Literal& literal = params->literal();
      const auto engine = backend::make_cpu_tfhe(params->config());
      device::Pool& pool = *engine->device()->pool();
      const int w = backend::torus_bits(torus);
      const std::size_t count = 20, n = shape.N;
      std::vector<double> errors;
      double at_messages = 0;
      // 16 keys, because the noise is an average over keys.
      for (int key = 0; key < 16; ++key) {
        KeyGenerator generator(params);
        const SecretKey secret = generator.secret_key();
        EvaluationKeys keys;
        keys.params = params;
        keys.key_id = secret.id();
        keys.rotation = generator.rotation_key(secret);
        keys.switching = generator.switch_key(secret);
        keys.packing = generator.packing_key(secret);
        std::vector<std::uint64_t> messages(count);
        for (auto& m : messages) m = rng();
        SeededLwe seeded{
            random::os_seed(), params->ciphertext_torus(), params->dimension(), count, {}};
        seeded.bodies = pool.allocate(count * backend::torus_bytes(seeded.torus));
        encrypt(seeded, secret.held(), messages, params->noise_bits(),
                random::SecretSeed(random::os_seed()), 0, count);
        const LweBlock in = expand(pool, seeded);
        std::vector<std::uint32_t> where(n);
        for (std::size_t i = 0; i < n; ++i) where[i] = static_cast<std::uint32_t>(i);
        std::shuffle(where.begin(), where.end(), rng);
        where.resize(count);
        const GlweBlock out =
            pack(*engine, *params, prepare(*engine, keys), in.view(), where, count);
        auto phase = test::glwe_phase(out.data.data(), torus, 1, n, 0, secret.large());
        const int widened = w - backend::torus_bits(in.torus);
        for (std::size_t t = 0; t < count; ++t) {
          phase[where[t]] -= test::lwe_phase(in.view(), t, secret.held()) << widened;
          at_messages = std::max(
              at_messages, std::abs(static_cast<double>(test::centred(phase[where[t]], torus))));
        }
        for (std::size_t i = 0; i < n; ++i) {
          // The coefficients of ciphertexts have the rounding of the decomposition on top.
          if (std::find(where.begin(), where.end(), i) == where.end()) {
            errors.push_back(std::ldexp(static_cast<double>(test::centred(phase[i], torus)), -w));
          }
        }
      }
      double squares = 0;
      for (const double error : errors) squares += error * error;
      const double measured = squares / static_cast<double>(errors.size());
      const tfhe::NoiseModel model(literal);
      // The key's errors alone: `square` 0 leaves the roundings out.
      const double expected = model.packing(literal.rotation_gadget, params->dimension(), 0, count);
      // The coefficients of one result are nearly independent; digits and errors are averages of
      // many, so that 3776 coefficients have a variance within a quarter of the mean with a
      // probability above 1 - 1e-9.
      EXPECT_GT(measured, 0.75 * expected);
      EXPECT_LT(measured, 1.25 * expected);
      EXPECT_LT(
          std::ldexp(at_messages, -w),
          10 * std::sqrt(model.packing(literal.rotation_gadget, params->dimension(), 0.5, count)));
    }
  }
}

TEST(Packing, RefusesWhatItCannotPack) {
  const ParamsPtr params = test::insecure_params();
  KeyGenerator generator(params);
  const SecretKey secret = generator.secret_key();
  const auto engine = backend::make_cpu_tfhe(params->config());
  device::Pool& pool = *engine->device()->pool();
  const PreparedKeys with = prepare(*engine, generator.evaluation_keys(secret, true)),
                     without = prepare(*engine, generator.evaluation_keys(secret));
  LweBlock two = make_lwe(pool, params->ciphertext_torus(), params->dimension(), 2);
  std::memset(two.data.data(), 0, two.bytes());
  const std::vector<std::uint32_t> fine{0, 255}, same{3, 3}, high{0, 256}, one{0};
  const auto run = [&](const PreparedKeys& keys, const LweBlock& in,
                       std::span<const std::uint32_t> coefficients, std::size_t per) {
    return pack(*engine, *params, keys, in.view(), coefficients, per).count;
  };
  EXPECT_EQ(run(with, two, fine, 2), 1U);
  EXPECT_EQ(run(with, two, same, 1), 2U);  // each in an output of its own
  EXPECT_THROW(run(without, two, fine, 2), KeyMissing);
  EXPECT_THROW(run(with, two, same, 2), InvalidArgument);
  EXPECT_THROW(run(with, two, high, 2), InvalidArgument);
  EXPECT_THROW(run(with, two, one, 2), InvalidArgument);
  EXPECT_THROW(run(with, two, fine, 0), InvalidArgument);
  EXPECT_THROW(run(with, make_lwe(pool, Torus::t32, params->n(), 2), fine, 2), ParamsMismatch);
  test::TfheShape fewer;
  fewer.n = params->n().value / 2;
  const auto other = backend::make_cpu_tfhe(test::insecure_params(fewer)->config());
  EXPECT_THROW(pack(*other, *params, with, two.view(), fine, 2), ParamsMismatch);
}

}  // namespace
}  // namespace jali::lwe
