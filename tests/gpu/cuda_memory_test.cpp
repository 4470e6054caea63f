// Copies within the GPU's memory.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "../seeded.h"
#include "gpu_ops.h"

namespace jali::testing {
namespace {

// Rows of batches of thousands lie 2 GB apart, and more.
TEST(GpuMemory, CopiesRowsThatLieFarApart) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  const auto gpu =
      backend::make_cuda_engine({Word::w32, 1024, make_primes(Word::w32, 10, 3), 1, ""});
  auto& memory = *gpu->memory();
  const auto pool = gpu->pool();
  constexpr std::size_t kBytes = 48, kRows = 2;
  std::mt19937 random{jali::test::test_seed()};
  for (const std::size_t stride : {std::size_t{4096}, (std::size_t{1} << 31) + 4096}) {
    std::vector<std::uint8_t> rows(kBytes * kRows), back(kBytes * kRows), one(kBytes);
    for (auto& byte : rows) byte = static_cast<std::uint8_t>(random());
    auto near = pool->allocate(rows.size()), far = pool->allocate((kRows - 1) * stride + kBytes);
    memory.copy_in(near.data(), rows.data(), rows.size());
    memory.copy_rows(far.data(), stride, near.data(), kBytes, kBytes, kRows);
    for (std::size_t r = 0; r < kRows; ++r) {
      memory.copy_out(one.data(), static_cast<std::byte*>(far.data()) + r * stride, kBytes);
      EXPECT_TRUE(std::equal(one.begin(), one.end(), rows.data() + r * kBytes)) << stride;
    }
    memory.fill(near.data(), 0, rows.size());
    memory.copy_rows(near.data(), kBytes, far.data(), stride, kBytes, kRows);
    memory.copy_out(back.data(), near.data(), back.size());
    EXPECT_EQ(back, rows) << stride;
  }
}

}  // namespace
}  // namespace jali::testing
