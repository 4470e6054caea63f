// Engines that share one GPU, one pool and one graph.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "../seeded.h"
#include "gpu_ops.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"

namespace jali::testing {
namespace {

/// A transform there and back, on an engine of one of two rings, with residues to compare with.
struct Side {
  Side(const std::shared_ptr<device::Device>& device, Word word, int log_n, std::mt19937_64& random)
      : config{word, std::size_t{1} << log_n, make_primes(word, log_n, 3), 1, ""},
        engine(backend::make_cuda_engine(config, device)),
        host(limbs.size() * config.n * word_bytes(word)),
        block(engine->pool()->allocate(host.size())) {
    for (std::size_t k = 0; k < limbs.size() * config.n; ++k) {
      const std::uint64_t x = random() % config.primes[limbs[k / config.n]];
      std::memcpy(host.data() + k * word_bytes(word), &x, word_bytes(word));
    }
    want = host;
    const auto cpu = backend::make_cpu_engine(config);
    cpu->ring().ntt({want.data(), limbs, 1});
    fill();
  }
  void fill() { engine->memory()->copy_in(block.data(), host.data(), host.size()); }
  View view() { return {block.data(), limbs, 1}; }
  std::vector<std::byte> got() const {
    std::vector<std::byte> out(host.size());
    engine->memory()->copy_out(out.data(), block.data(), out.size());
    return out;
  }

  const std::vector<PrimeIndex> limbs{0, 1, 2};
  const backend::Config config;
  const std::unique_ptr<backend::Engine> engine;
  std::vector<std::byte> host, want;
  device::Buffer block;
};

class SharedGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) {
      GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
    }
    device = device::gpu_device({});
    a = std::make_unique<Side>(device, Word::w32, 13, random);
    b = std::make_unique<Side>(device, Word::w64, 12, random);
  }
  std::mt19937_64 random{jali::test::test_seed()};
  std::shared_ptr<device::Device> device;
  std::unique_ptr<Side> a, b;
};

TEST_F(SharedGpu, TwoEnginesHaveOneMemoryAndOnePool) {
  EXPECT_EQ(a->engine->memory(), b->engine->memory());
  EXPECT_EQ(a->engine->pool(), b->engine->pool());
  EXPECT_EQ(a->engine->pool(), device->pool());
  EXPECT_EQ(a->engine->name(), device->name());
  const std::size_t before = device->pool()->bytes_in_use();
  {
    const auto block = b->engine->pool()->allocate(std::size_t{1} << 20);
  }
  const std::size_t cached = device->pool()->bytes_cached();
  EXPECT_GE(cached, std::size_t{1} << 20);
  const auto again = a->engine->pool()->allocate(std::size_t{1} << 20);  // what b's user freed
  EXPECT_LT(device->pool()->bytes_cached(), cached);
  EXPECT_GT(device->pool()->bytes_in_use(), before);
}

TEST_F(SharedGpu, TheirWorkIsInOneOrder) {
  // The block that a wrote is b's next operand: only the order of the stream makes b wait.
  for (int repeat = 0; repeat < 50; ++repeat) {
    a->fill(), b->fill();
    auto between = device->pool()->allocate(a->host.size());
    a->engine->ring().ntt(a->view());
    b->engine->memory()->copy(between.data(), a->block.data(), a->host.size());
    a->engine->ring().intt(a->view());
    b->engine->ring().ntt(b->view());
    std::vector<std::byte> got(a->host.size());
    b->engine->memory()->copy_out(got.data(), between.data(), got.size());
    ASSERT_TRUE(got == a->want);
    ASSERT_TRUE(a->got() == a->host);
    ASSERT_TRUE(b->got() == b->want);
  }
}

TEST_F(SharedGpu, OneGraphHoldsTheWorkOfBoth) {
  const auto graph = device->record([&] {
    a->engine->ring().ntt(a->view());
    b->engine->ring().ntt(b->view());
  });
  EXPECT_GE(graph->steps().size(), 2U);
  for (int run = 0; run < 3; ++run) {
    a->fill(), b->fill();
    graph->run();
    ASSERT_TRUE(a->got() == a->want);
    ASSERT_TRUE(b->got() == b->want);
  }
  a.reset();  // the device stays for the other
  b->fill();
  b->engine->ring().ntt(b->view());
  EXPECT_TRUE(b->got() == b->want);
}

TEST_F(SharedGpu, ARecordingOfOneEngineRefusesUploadsOfTheOther) {
  EXPECT_THROW(device->record([&] { b->fill(); }), InvalidArgument);
  b->engine->ring().ntt(b->view());
  EXPECT_TRUE(b->got() == b->want);
}

TEST_F(SharedGpu, ThreadsUseTheEnginesAtOnce) {
  std::array<bool, 2> same{true, true};
  std::array<std::thread, 2> threads;
  for (int k = 0; k < 2; ++k) {
    threads[k] = std::thread([&, k] {
      Side& side = k == 0 ? *a : *b;
      for (int repeat = 0; repeat < 50; ++repeat) {
        side.engine->ring().ntt(side.view());
        side.engine->ring().intt(side.view());
      }
      side.engine->ring().ntt(side.view());
      same[k] = side.got() == side.want;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(same[0] && same[1]);
}

}  // namespace
}  // namespace jali::testing
