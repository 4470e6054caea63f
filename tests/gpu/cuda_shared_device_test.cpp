// Engines that share one GPU, one pool and one graph.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "gpu_ops.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"

namespace jali::testing {
namespace {

/// A transform there and back, on an engine of one of two rings, with residues to compare with.
struct Side {
  Side(const std::shared_ptr<device::Device>& device, Word word, int log_n, std::mt19937_64& random)
      : config{word, std::size_t{1} << log_n, make_primes(word, log_n, 3), 1, ""},
        ops(backend::make_cuda_ops(config, device)),
        host(limbs.size() * config.n * word_bytes(word)),
        block(ops->pool()->allocate(host.size())) {
    for (std::size_t k = 0; k < limbs.size() * config.n; ++k) {
      const std::uint64_t x = random() % config.primes[limbs[k / config.n]];
      std::memcpy(host.data() + k * word_bytes(word), &x, word_bytes(word));
    }
    want = host;
    const auto cpu = backend::make_cpu_ops(config);
    cpu->ntt({want.data(), limbs, 1});
    fill();
  }
  void fill() { ops->memory()->copy_in(block.data(), host.data(), host.size()); }
  View view() { return {block.data(), limbs, 1}; }
  std::vector<std::byte> got() const {
    std::vector<std::byte> out(host.size());
    ops->memory()->copy_out(out.data(), block.data(), out.size());
    return out;
  }

  const std::vector<PrimeIndex> limbs{0, 1, 2};
  const backend::Config config;
  const std::unique_ptr<backend::Ops> ops;
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
  std::mt19937_64 random{std::random_device{}()};
  std::shared_ptr<device::Device> device;
  std::unique_ptr<Side> a, b;
};

TEST_F(SharedGpu, TwoEnginesHaveOneMemoryAndOnePool) {
  EXPECT_EQ(a->ops->memory(), b->ops->memory());
  EXPECT_EQ(a->ops->pool(), b->ops->pool());
  EXPECT_EQ(a->ops->pool(), device->pool());
  EXPECT_EQ(a->ops->name(), device->name());
  const std::size_t before = device->pool()->bytes_in_use();
  {
    const auto block = b->ops->pool()->allocate(std::size_t{1} << 20);
  }
  const std::size_t cached = device->pool()->bytes_cached();
  EXPECT_GE(cached, std::size_t{1} << 20);
  const auto again = a->ops->pool()->allocate(std::size_t{1} << 20);  // what b's user freed
  EXPECT_LT(device->pool()->bytes_cached(), cached);
  EXPECT_GT(device->pool()->bytes_in_use(), before);
}

TEST_F(SharedGpu, TheirWorkIsInOneOrder) {
  // a's block is b's operand next: nothing waits in between but the order of the stream.
  for (int repeat = 0; repeat < 50; ++repeat) {
    a->fill(), b->fill();
    auto between = device->pool()->allocate(a->host.size());
    a->ops->ntt(a->view());
    b->ops->memory()->copy(between.data(), a->block.data(), a->host.size());
    a->ops->intt(a->view());
    b->ops->ntt(b->view());
    std::vector<std::byte> got(a->host.size());
    b->ops->memory()->copy_out(got.data(), between.data(), got.size());
    ASSERT_TRUE(got == a->want);
    ASSERT_TRUE(a->got() == a->host);
    ASSERT_TRUE(b->got() == b->want);
  }
}

TEST_F(SharedGpu, OneGraphHoldsTheWorkOfBoth) {
  const auto graph = device->record([&] {
    a->ops->ntt(a->view());
    b->ops->ntt(b->view());
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
  b->ops->ntt(b->view());
  EXPECT_TRUE(b->got() == b->want);
}

TEST_F(SharedGpu, ARecordingOfOneEngineRefusesUploadsOfTheOther) {
  EXPECT_THROW(device->record([&] { b->fill(); }), InvalidArgument);
  b->ops->ntt(b->view());
  EXPECT_TRUE(b->got() == b->want);
}

TEST_F(SharedGpu, ThreadsUseTheEnginesAtOnce) {
  std::array<bool, 2> same{true, true};
  std::array<std::thread, 2> threads;
  for (int k = 0; k < 2; ++k) {
    threads[k] = std::thread([&, k] {
      Side& side = k == 0 ? *a : *b;
      for (int repeat = 0; repeat < 50; ++repeat) {
        side.ops->ntt(side.view());
        side.ops->intt(side.view());
      }
      side.ops->ntt(side.view());
      same[k] = side.got() == side.want;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(same[0] && same[1]);
}

}  // namespace
}  // namespace jali::testing
