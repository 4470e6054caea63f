// TFHE's evaluator on the GPU: every operation by value, batches of many sizes, threads, and
// functions that are recorded.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "../schemes/tfhe/as_read.h"
#include "../seeded.h"
#include "../tfhe_literals.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/lwe/external_product.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/program.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::tfhe {
namespace {

using test::TfheShape;
using Values = std::vector<std::uint64_t>;
using Inputs = std::vector<const Ciphertext*>;

class CudaTfheEvaluator : public testing::Test {
 protected:
  struct World {
    explicit World(const TfheShape& shape, std::shared_ptr<device::Faults> faults = nullptr)
        : params(test::insecure_params(shape)),
          device(device::gpu_device({.faults = std::move(faults)})),
          client(params),
          evaluator(std::make_shared<const Evaluator>(
              std::shared_ptr<const backend::TfheOps>(
                  backend::make_cuda_tfhe(params->config(), device)),
              client.evaluation_keys())) {}
    Ciphertext given(const Values& values) {
      return evaluator->bind(client.encrypt(values, params->message_modulus() - 1));
    }
    Values shown(const Ciphertext& a) const { return client.decrypt(evaluator->host_copy(a)); }
    LookUpTable squares() const {
      return LookUpTable(params, [](std::uint64_t v) { return v * v % 16; });
    }

    ParamsPtr params;
    std::shared_ptr<device::Device> device;
    Client client;
    std::shared_ptr<const Evaluator> evaluator;
  };

  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  static std::vector<TfheShape> shapes() {
    std::vector<TfheShape> out;
    for (const Order order : {Order::switch_first, Order::bootstrap_first}) {
      out.push_back({Rotation::classic, 1, order, Torus::t64, 12, 1});
      out.push_back({Rotation::multi_bit, 3, order, Torus::t64, 12, 1});
      out.push_back({Rotation::block_binary, 3, order, Torus::t32, 12, 2});
    }
    return out;
  }
  static Values random_values(std::mt19937_64& rng, std::size_t count) {
    Values out(count);
    for (auto& v : out) v = rng() % 4;
    return out;
  }
};

// Exact, whatever the transform of the engine's rotations: the CPU's bits.
TEST_F(CudaTfheEvaluator, MultipliesAndSelectsWithTheBitsOfTheCpu) {
  JALI_SEEDED(rng);
  const std::vector<std::uint8_t> bits{0, 1};
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    const ParamsPtr params = test::insecure_params(shape);
    const auto cpu = backend::make_cpu_tfhe(params->config());
    const auto cuda = backend::make_cuda_tfhe(params->config(), device::gpu_device({}));
    lwe::KeyGenerator generator(params);
    const lwe::SecretKey secret = generator.secret_key();
    const lwe::SeededGgsw selectors = generator.ggsw(secret, bits);
    Values words(600 * params->N().value);
    for (auto& word : words) word = rng();
    const lwe::SeededGlwe x = generator.glwe(secret, words), y = generator.glwe(secret, words);
    const auto results = [&](const backend::TfheOps& engine, std::size_t bit) {
      const lwe::GgswBlock selector = lwe::bind(engine, selectors);
      const lwe::GlweBlock zero = lwe::bind(engine, x), one = lwe::bind(engine, y);
      std::vector<std::byte> out(2 * zero.bytes());
      lwe::external_product(engine, selector, bit, zero).data.copy_out(out.data());
      lwe::cmux(engine, selector, bit, zero, one).data.copy_out(out.data() + zero.bytes());
      return out;
    };
    for (const std::size_t bit : {0, 1}) EXPECT_EQ(results(*cpu, bit), results(*cuda, bit));
  }
}

TEST_F(CudaTfheEvaluator, ComputesWhatItShould) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    World w(shape);
    const Evaluator& e = *w.evaluator;
    for (const std::size_t count : {1, 2, 133, 1000}) {
      const Values a = random_values(rng, count), b = random_values(rng, count);
      const Ciphertext x = w.given(a), y = w.given(b);
      const Values sum = w.shown(e.add(x, y)), squared = w.shown(e.apply(e.add(x, y), w.squares()));
      const Values product = w.shown(e.apply(
          x, y,
          LookUpTable::of_two(w.params, [](std::uint64_t u, std::uint64_t v) { return u * v; })));
      const Values refreshed = w.shown(e.refresh(e.add_clear(e.scale(x, 2), 3)));
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(sum[i], a[i] + b[i]);
        ASSERT_EQ(squared[i], (a[i] + b[i]) * (a[i] + b[i]) % 16);
        ASSERT_EQ(product[i], a[i] * b[i]);
        ASSERT_EQ(refreshed[i], (2 * a[i] + 3) % 4);
      }
    }
  }
}

// What was read has a seed and bodies; its masks are expanded on the GPU.
TEST_F(CudaTfheEvaluator, BindsSeedsAsTheCpuExpandsThem) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    World w(shape);
    for (const std::size_t count : {0, 1, 2, 133, 1000}) {
      const Values a = random_values(rng, count);
      const Ciphertext whole = w.client.encrypt(a), read = test::as_read(whole);
      Ciphertext bound[4];
      std::vector<std::thread> threads;
      for (Ciphertext& out : bound) {
        threads.emplace_back([&] { out = w.evaluator->bind(read); });
      }
      for (auto& thread : threads) thread.join();
      for (const Ciphertext& x : bound) {
        EXPECT_TRUE(count == 0 || !x.data->data.host_accessible());
        const Ciphertext here = w.evaluator->host_copy(x);
        ASSERT_EQ(here.data->bytes(), whole.data->bytes());
        EXPECT_TRUE(count == 0 || std::memcmp(here.data->data.data(), whole.data->data.data(),
                                              whole.data->bytes()) == 0);
        EXPECT_EQ(w.client.decrypt(here), a);
      }
      EXPECT_EQ(w.client.decrypt(read), a);
      if (count == 0) continue;
      const Values refreshed = w.shown(w.evaluator->refresh(bound[0]));
      EXPECT_EQ(refreshed, a);
    }
  }
}

/// Counts calls of the driver.
class Calls final : public device::Faults {
 public:
  device::Fault before(device::Call call) override {
    if (call == device::Call::copy) ++copies;
    if (call == device::Call::launch) ++launches;
    return device::Fault::none;
  }
  std::atomic<int> copies = 0, launches = 0;
};

// The words of so many ciphertexts are copied in several pieces, and their bodies in one.
TEST_F(CudaTfheEvaluator, OnlyBodiesCrossToTheGpu) {
  const auto calls = std::make_shared<Calls>();
  World w(shapes()[0], calls);
  const Ciphertext whole = w.client.encrypt(Values(4096)), read = test::as_read(whole);
  ASSERT_GE(whole.data->bytes(), std::size_t{8} << 20);
  const auto counted = [&](const Ciphertext& given) {
    w.evaluator->bind(given);  // the pool has the memory from here on
    calls->copies = calls->launches = 0;
    w.evaluator->bind(given);
    return std::pair(calls->copies.load(), calls->launches.load());
  };
  EXPECT_GT(counted(whole).first, 1);
  EXPECT_EQ(counted(read), std::pair(1, 1));
}

TEST_F(CudaTfheEvaluator, ThreadsShareIt) {
  JALI_SEEDED(rng);
  World w(shapes()[0]);
  const Values a = random_values(rng, 64);
  const Ciphertext x = w.given(a);
  Values got[4];
  std::vector<std::thread> threads;
  for (Values& out : got) {
    threads.emplace_back([&] { out = w.shown(w.evaluator->apply(x, w.squares())); });
  }
  for (auto& thread : threads) thread.join();
  for (const Values& out : got) {
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(out[i], a[i] * a[i] % 16);
  }
}

// The graph takes tables along, and results of several runs do not share memory.
TEST_F(CudaTfheEvaluator, FunctionsAreRecorded) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    World w(shape);
    const Evaluator& e = *w.evaluator;
    const auto f = [&](std::span<const Ciphertext> in) {
      const Ciphertext sum = e.add(in[0], in[1]);
      const Ciphertext squared = e.apply(sum, w.squares());
      return std::vector<Ciphertext>{e.refresh(squared), e.subtract(in[0], in[1]), squared};
    };
    constexpr std::size_t kCount = 37;
    const Ciphertext zeros = w.given(Values(kCount));
    const Ciphertext other = w.given(Values(kCount));
    Program program(w.evaluator, f, Inputs{&zeros, &other});
    EXPECT_GT(program.bytes(), 0u);
    std::vector<Values> wanted;
    std::vector<std::vector<Ciphertext>> results;
    for (int run = 0; run < 3; ++run) {
      const Values a = random_values(rng, kCount), b = random_values(rng, kCount);
      const Ciphertext x = w.given(a), y = test::as_read(w.client.encrypt(b, 3));
      results.push_back(program.run(Inputs{&x, &y}));
      wanted.emplace_back();
      for (std::size_t i = 0; i < kCount; ++i) wanted.back().push_back(a[i] + b[i]);
    }
    for (std::size_t run = 0; run < results.size(); ++run) {
      const Values squared = w.shown(results[run][2]), refreshed = w.shown(results[run][0]);
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint64_t want = wanted[run][i] * wanted[run][i] % 16;
        ASSERT_EQ(squared[i], want);
        ASSERT_EQ(refreshed[i], want % 4);
      }
      EXPECT_EQ(results[run][2].history.norm2(), 1);
    }
  }
}

TEST_F(CudaTfheEvaluator, WhatNeedsTheHostIsNotRecorded) {
  World w(shapes()[0]);
  const Evaluator& e = *w.evaluator;
  const Ciphertext host = w.client.encrypt(Values{1}), x = e.bind(host);
  const auto record = [&](CiphertextFunction f) {
    const Program program(w.evaluator, std::move(f), Inputs{&x});
  };
  for (const Ciphertext& given : {host, test::as_read(host)}) {
    EXPECT_THROW(record([&](auto in) { return std::vector{e.add(in[0], e.bind(given))}; }),
                 InvalidArgument);
  }
  EXPECT_THROW(record([&](auto in) {
                 w.shown(in[0]);
                 return std::vector{in[0]};
               }),
               InvalidArgument);
  // The device goes on.
  EXPECT_EQ(w.shown(e.refresh(x)), Values{1});
}

}  // namespace
}  // namespace jali::tfhe
