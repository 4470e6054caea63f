// TFHE's client on the GPU: masks, keys, encryption and phases with the CPU's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "../backend/tfhe_client_compare.h"
#include "../tfhe_literals.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/params/tfhe_presets.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::backend::test {
namespace {

using jali::test::insecure_params;
using jali::test::TfheShape;

class CudaTfheClient : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    device_ = device::gpu_device({});
  }
  std::shared_ptr<const TfheClientOps> engine(const TfheConfig& config) const {
    return make_cuda_tfhe_client(config, device_);
  }
  static int threads() {
    return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  }
  std::shared_ptr<device::Device> device_;
};

TEST_F(CudaTfheClient, AgreesWithTheOracleOnSmallSets) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    compare_clients(*engine(config), *make_ref_tfhe_client(config), rng);
  }
}

// One tile and several, all words, more rows than a grid has.
TEST_F(CudaTfheClient, AgreesWithTheCpuOnLargeSizes) {
  JALI_SEEDED(rng);
  struct Size {
    Torus torus;
    std::size_t k, N;
    int levels, base_log;
    std::size_t count;
  };
  for (const Size& size :
       {Size{Torus::t64, 1, 2048, 1, 23, 300}, Size{Torus::t32, 1, 2048, 2, 8, 37},
        Size{Torus::t64, 3, 512, 1, 18, 129}, Size{Torus::t64, 4, 4096, 2, 15, 19},
        Size{Torus::t32, 2, 8192, 3, 7, 5}, Size{Torus::t64, 1, 65536, 2, 15, 3},
        Size{Torus::t64, 1, 256, 2, 15, 66000}}) {
    TfheConfig config;
    config.torus = size.torus;
    config.n = LweDimension(630);
    config.k = GlweDimension(size.k);
    config.N = PolynomialSize(size.N);
    config.rotation_gadget = {size.base_log, size.levels};
    config.switch_gadget = {4, 4};
    config.threads = threads();
    const auto cpu = make_cpu_tfhe_client(config);
    expect_same_gadgets(*engine(config), *cpu, size.count, rng);
    expect_same_lwe(*engine(config), *cpu, rng);
  }
}

TEST_F(CudaTfheClient, ExpandsMoreRowsThanAGridHas) {
  JALI_SEEDED(rng);
  const TfheConfig config = small_configs(rng)[0];
  TorusBlock bodies(Torus::t64, 70001, 1);
  for (std::size_t i = 0; i < bodies.size(); ++i) bodies.set(i, rng());
  const random::Seed seed = random_seed(rng);
  EXPECT_TRUE(
      same(ClientRunner(*engine(config)).expand(bodies, LweDimension(3), seed, 9),
           ClientRunner(*make_cpu_tfhe_client(config)).expand(bodies, LweDimension(3), seed, 9)));
}

bool equal(const device::Buffer& a, const device::Buffer& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

void expect_same_keys(const tfhe::ParamsPtr& params, std::shared_ptr<const TfheClientOps> gpu,
                      int threads, bool packing = true) {
  const random::Seed seed = random::os_seed();
  lwe::KeyGenerator on_cpu(params, threads, seed), on_gpu(params, std::move(gpu), seed);
  const lwe::SecretKey s = on_cpu.secret_key(), t = on_gpu.secret_key();
  const lwe::EvaluationKeys a = on_cpu.evaluation_keys(s, packing),
                            b = on_gpu.evaluation_keys(t, packing);
  EXPECT_EQ(a.rotation.rows.seed, b.rotation.rows.seed);
  EXPECT_TRUE(equal(a.rotation.rows.bodies, b.rotation.rows.bodies)) << "bootstrapping key";
  EXPECT_TRUE(equal(a.switching.bodies, b.switching.bodies)) << "key-switching key";
  ASSERT_EQ(b.packing.has_value(), packing);
  if (packing) {
    EXPECT_TRUE(equal(a.packing->bodies, b.packing->bodies)) << "packing key";
  }
}

TEST_F(CudaTfheClient, KeysOfOneSeedAreTheSame) {
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const TfheShape& shape :
         {TfheShape{Rotation::classic, 1, tfhe::Order::switch_first, torus, 10, 2},
          TfheShape{Rotation::multi_bit, 3, tfhe::Order::bootstrap_first, torus, 12, 1},
          TfheShape{Rotation::block_binary, 3, tfhe::Order::switch_first, torus, 12, 1}}) {
      SCOPED_TRACE(jali::test::name_of(shape));
      const auto params = insecure_params(shape);
      expect_same_keys(params, engine(params->config()), 2);
    }
  }
}

TEST_F(CudaTfheClient, KeysOfPresetsAreTheSame) {
  for (const char* name :
       {"boolean", "message_2_carry_2", "message_3_carry_3", "strix_iv", "message_4_carry_4"}) {
    SCOPED_TRACE(name);
    const auto params = tfhe::Params::create(tfhe::preset(name));
    // A packing key of the large sets has many gigabytes.
    expect_same_keys(params, engine(params->config()), threads(), params->N().value <= 2048);
  }
}

TEST_F(CudaTfheClient, EncryptsAndDecryptsWithTheCpusBits) {
  for (const tfhe::Order order : {tfhe::Order::switch_first, tfhe::Order::bootstrap_first}) {
    TfheShape shape;
    shape.order = order;
    const auto params = insecure_params(shape);
    const random::Seed seed = random::os_seed();
    tfhe::Client on_cpu(params, 2, seed), on_gpu(params, engine(params->config()), seed);
    std::vector<std::uint64_t> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 4;
    const tfhe::Ciphertext a = on_cpu.encrypt(values), b = on_gpu.encrypt(values);
    ASSERT_EQ(a.seed, b.seed);
    ASSERT_TRUE(b.data->data.host_accessible());
    ASSERT_EQ(a.data->bytes(), b.data->bytes());
    EXPECT_EQ(std::memcmp(a.data->data.data(), b.data->data.data(), a.data->bytes()), 0);
    EXPECT_EQ(on_gpu.decrypt(a), values);
    EXPECT_EQ(on_cpu.errors(a), on_gpu.errors(a));
    EXPECT_EQ(on_gpu.decrypt(on_gpu.encrypt({})), std::vector<std::uint64_t>{});
    // On the client's own device, and on another.
    const auto moved = [&](device::Device& to) {
      auto block = std::make_shared<lwe::LweBlock>(
          lwe::make_lwe(*to.pool(), a.data->torus, a.data->dimension, a.data->count));
      to.memory()->copy_in(block->data.data(), a.data->data.data(), a.data->bytes());
      tfhe::Ciphertext out = a;
      out.data = std::move(block);
      return out;
    };
    EXPECT_EQ(on_gpu.decrypt(moved(*device_)), values);
    EXPECT_THROW(on_gpu.decrypt(moved(*device::gpu_device({}))), InvalidArgument);
    EXPECT_THROW(on_cpu.decrypt(moved(*device_)), InvalidArgument);
  }
}

TEST_F(CudaTfheClient, BlocksOfSecretsAreWiped) {
  const auto params = insecure_params();
  tfhe::Client client(params, engine(params->config()));
  client.evaluation_keys(true);
  client.decrypt(client.encrypt(std::vector<std::uint64_t>(100, 3)));
  const auto content = [&](std::size_t bytes, bool secret) {
    const device::Buffer block = device_->pool()->allocate(bytes, secret);
    std::vector<std::uint8_t> host(bytes);
    device_->memory()->copy_out(host.data(), block.data(), bytes);
    return host;
  };
  const auto large = client.secret_key().large(), small = client.secret_key().small();
  for (const auto& bits : {large, small}) {
    EXPECT_TRUE(std::ranges::all_of(content(bits.size(), true), [](auto b) { return b == 0; }));
    EXPECT_FALSE(std::ranges::equal(content(bits.size(), false), bits));
  }
  const std::vector<std::uint8_t> messages = content(100 * sizeof(std::uint64_t), true);
  EXPECT_TRUE(std::ranges::all_of(messages, [](auto b) { return b == 0; }));
}

TEST_F(CudaTfheClient, RefusesToBeRecorded) {
  const auto params = insecure_params();
  tfhe::Client client(params, engine(params->config()));
  EXPECT_THROW(device_->record([&] { client.encrypt(std::vector<std::uint64_t>{1}); }),
               InvalidArgument);
  EXPECT_EQ(client.decrypt(client.encrypt(std::vector<std::uint64_t>{1})),
            std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace jali::backend::test
