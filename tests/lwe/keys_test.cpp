// Keys, decrypted by the definitions of backend/torus.h; their noise from both sides.
#include "jali/lwe/keys.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <vector>

#include "../seeded.h"
#include "../tfhe_literals.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/key_generator.h"
#include "phases.h"

namespace jali::lwe {
namespace {

using backend::Gadget;
using backend::Rotation;
using test::centred;
using test::expect_tuniform;
using test::glwe_phase;
using test::lwe_phase;
using test::TfheShape;

/// The bits of each unit of each step, by the definition in backend/torus.h.
std::vector<int> unit_bits(const Params& params, std::span<const std::uint8_t> s) {
  std::vector<int> out;
  const auto config = params.config();
  const auto group = static_cast<std::size_t>(config.group);
  for (std::size_t step = 0; step < config.steps(); ++step) {
    std::size_t set_bits = 0;
    for (std::size_t j = 0; j < group; ++j) set_bits |= std::size_t{s[step * group + j]} << j;
    if (config.rotation == Rotation::multi_bit) {
      for (std::size_t set = 1; set < std::size_t{1} << group; ++set)
        out.push_back(set == set_bits);
    } else {
      for (std::size_t j = 0; j < group; ++j) out.push_back(static_cast<int>(set_bits >> j & 1));
    }
  }
  return out;
}

std::vector<TfheShape> shapes() {
  std::vector<TfheShape> out;
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    out.push_back({Rotation::classic, 1, tfhe::Order::switch_first, torus, 10, 2});
    out.push_back({Rotation::multi_bit, 2, tfhe::Order::bootstrap_first, torus, 10, 1});
    out.push_back({Rotation::multi_bit, 3, tfhe::Order::switch_first, torus, 12, 1});
    out.push_back({Rotation::block_binary, 3, tfhe::Order::bootstrap_first, torus, 12, 1});
  }
  return out;
}

TEST(BootstrappingKey, IsGgswCiphertextsOfTheUnits) {
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    const ParamsPtr params = test::insecure_params(shape);
    KeyGenerator generator(params, 2);
    const SecretKey secret = generator.secret_key();
    const SeededGgsw ggsws = generator.rotation_key(secret);
    EXPECT_EQ(ggsws.count(), params->ggsw_count());
    const SeededGlwe& key = ggsws.rows;
    ASSERT_EQ(key.count, params->glwe_rows());
    EXPECT_EQ(key.bytes(), params->rotation_key_bytes());
    const auto pool = device::Pool::create();
    const GlweBlock block = expand(*pool, key);
    const auto units = unit_bits(*params, secret.small());
    ASSERT_EQ(units.size(), params->ggsw_count());
    const std::size_t k = shape.k, n = shape.N;
    const Gadget gadget = params->literal().rotation_gadget;
    const int w = backend::torus_bits(shape.torus);
    std::vector<std::int64_t> noise;
    std::size_t row = 0;
    for (const int m : units) {
      for (std::size_t c = 0; c <= k; ++c) {
        for (int j = 1; j <= gadget.levels; ++j, ++row) {
          auto phase = glwe_phase(block.data.data(), shape.torus, k, n, row, secret.large());
          const int shift = w - j * gadget.base_log;
          for (std::size_t t = 0; t < n; ++t) {
            // -m S_c 2^(w - j g), or m 2^(w - j g)
            const std::uint64_t message =
                c < k ? 0 - (std::uint64_t{static_cast<std::uint8_t>(m * secret.large()[c * n + t])}
                             << shift)
                : t == 0 ? static_cast<std::uint64_t>(m) << shift
                         : 0;
            noise.push_back(centred(phase[t] - message, shape.torus));
          }
        }
      }
    }
    expect_tuniform(noise, params->literal().glwe_noise_bits);
  }
}

TEST(SwitchingKey, HoldsTheLargeSecret) {
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    const ParamsPtr params = test::insecure_params(shape);
    KeyGenerator generator(params, 2);
    const SecretKey secret = generator.secret_key();
    const SeededLwe key = generator.switch_key(secret);
    EXPECT_EQ(key.bytes(), params->switch_key_bytes());
    const auto pool = device::Pool::create();
    const LweBlock block = expand(*pool, key);
    const Gadget gadget = params->literal().switch_gadget;
    std::vector<std::int64_t> noise;
    for (std::size_t i = 0, row = 0; i < params->large().value; ++i) {
      for (int j = 1; j <= gadget.levels; ++j, ++row) {
        const std::uint64_t message = std::uint64_t{secret.large()[i]}
                                      << (32 - j * gadget.base_log);
        noise.push_back(
            centred(lwe_phase(block.view(), row, secret.small()) - message, Torus::t32));
      }
    }
    ASSERT_EQ(noise.size(), key.count);
    expect_tuniform(noise, params->literal().lwe_noise_bits);
  }
}

TEST(PackingKey, HoldsTheSecretOfHeldCiphertexts) {
  for (const tfhe::Order order : {tfhe::Order::switch_first, tfhe::Order::bootstrap_first}) {
    TfheShape shape;
    shape.order = order;
    SCOPED_TRACE(test::name_of(shape));
    const ParamsPtr params = test::insecure_params(shape);
    KeyGenerator generator(params, 2);
    const SecretKey secret = generator.secret_key();
    const SeededGlwe key = generator.packing_key(secret);
    EXPECT_EQ(key.bytes(), params->packing_key_bytes());
    const auto pool = device::Pool::create();
    const GlweBlock block = expand(*pool, key);
    const Gadget gadget = params->literal().rotation_gadget;
    std::vector<std::int64_t> noise;
    for (std::size_t i = 0, row = 0; i < params->dimension().value; ++i) {
      for (int j = 1; j <= gadget.levels; ++j, ++row) {
        const auto phase =
            glwe_phase(block.data.data(), shape.torus, 1, shape.N, row, secret.large());
        const std::uint64_t message = std::uint64_t{secret.held()[i]} << (64 - j * gadget.base_log);
        for (std::size_t t = 0; t < shape.N; ++t) {
          noise.push_back(centred(phase[t] - (t == 0 ? message : 0), shape.torus));
        }
      }
    }
    expect_tuniform(noise, params->literal().glwe_noise_bits);
  }
}

TEST(SecretKey, HasUniformBitsOrBlocksWithAtMostOneBit) {
  for (const bool blocks : {false, true}) {
    TfheShape shape;
    shape.rotation = blocks ? Rotation::block_binary : Rotation::classic;
    shape.group = blocks ? 3 : 1;
    shape.n = 6000;
    shape.N = 4096;
    const SecretKey secret = KeyGenerator(tfhe::Params::create([&] {
                               tfhe::Literal literal = test::insecure_literal();
                               literal.rotation = shape.rotation;
                               literal.group = shape.group;
                               literal.n = LweDimension(shape.n);
                               literal.N = PolynomialSize(shape.N);
                               return literal;
                             }()))
                                 .secret_key();
    double small = 0, large = 0;
    for (const std::uint8_t bit : secret.small()) small += bit;
    for (const std::uint8_t bit : secret.large()) large += bit;
    // 6.5 standard deviations.
    EXPECT_LT(std::abs(large - 2048), 6.5 * std::sqrt(4096.0 / 4));
    if (blocks) {
      for (std::size_t b = 0; b < 2000; ++b) {
        EXPECT_LE(secret.small()[3 * b] + secret.small()[3 * b + 1] + secret.small()[3 * b + 2], 1);
      }
      EXPECT_LT(std::abs(small - 1500), 6.5 * std::sqrt(2000 * 0.75 * 0.25));
    } else {
      EXPECT_LT(std::abs(small - 3000), 6.5 * std::sqrt(6000.0 / 4));
    }
    EXPECT_FALSE(secret.id().is_none());
  }
}

bool equal(const device::Buffer& a, const device::Buffer& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(KeyGenerator, MakesTheSameKeysFromOneSeedOnAnyNumberOfThreads) {
  const ParamsPtr params = test::insecure_params();
  const random::Seed seed = random::os_seed();
  const auto keys = [&](int threads, const random::Seed& from) {
    KeyGenerator generator(params, threads, from);
    const SecretKey secret = generator.secret_key();
    return generator.evaluation_keys(secret, true);
  };
  const EvaluationKeys one = keys(1, seed), three = keys(3, seed),
                       other = keys(1, random::os_seed());
  EXPECT_EQ(one.key_id, three.key_id);
  EXPECT_TRUE(equal(one.rotation.rows.bodies, three.rotation.rows.bodies));
  EXPECT_TRUE(equal(one.switching.bodies, three.switching.bodies));
  EXPECT_TRUE(equal(one.packing->bodies, three.packing->bodies));
  EXPECT_EQ(one.bytes(), params->key_bytes() + params->packing_key_bytes());
  EXPECT_FALSE(equal(one.rotation.rows.bodies, other.rotation.rows.bodies));
  EXPECT_NE(one.rotation.rows.seed, one.packing->seed);
  EXPECT_FALSE(one.key_id == other.key_id);
}

TEST(KeyGenerator, MakesTheSameKeysOnEveryEngine) {
  const random::Seed seed = random::os_seed();
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    const ParamsPtr params = test::insecure_params(shape);
    KeyGenerator on_cpu(params, 2, seed),
        on_ref(params, backend::make_ref_tfhe_client(params->config()), seed);
    const SecretKey s = on_cpu.secret_key(), t = on_ref.secret_key();
    const EvaluationKeys a = on_cpu.evaluation_keys(s, true), b = on_ref.evaluation_keys(t, true);
    EXPECT_TRUE(equal(a.rotation.rows.bodies, b.rotation.rows.bodies));
    EXPECT_TRUE(equal(a.switching.bodies, b.switching.bodies));
    EXPECT_TRUE(equal(a.packing->bodies, b.packing->bodies));
  }
  TfheShape other;
  other.n = 14;
  const ParamsPtr params = test::insecure_params();
  EXPECT_THROW(
      KeyGenerator(params, backend::make_ref_tfhe_client(test::insecure_params(other)->config())),
      ParamsMismatch);
  EXPECT_THROW(KeyGenerator(params, nullptr), InvalidArgument);
  EXPECT_THROW(KeyGenerator(nullptr, 1), InvalidArgument);
}

TEST(KeyGenerator, TellsItsProgressAndStopsWhereItIsAsked) {
  const ParamsPtr params = test::insecure_params();
  KeyGenerator generator(params, 2);
  const SecretKey secret = generator.secret_key();
  std::size_t last = 0, all = 0;
  generator.evaluation_keys(secret, true, [&](std::size_t done, std::size_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  });
  EXPECT_EQ(last, params->glwe_rows() + params->switch_rows() + params->packing_rows());
  EXPECT_EQ(all, last);
  struct Stop {};
  int calls = 0;
  EXPECT_THROW(generator.evaluation_keys(secret, false, {},
                                         [&] {
                                           if (++calls == 3) throw Stop();
                                         }),
               Stop);
  TfheShape shape;
  shape.n = 14;
  KeyGenerator foreign(test::insecure_params(shape));
  EXPECT_THROW(foreign.evaluation_keys(secret), ParamsMismatch);
}

}  // namespace
}  // namespace jali::lwe
