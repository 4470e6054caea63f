// Tests the pool over a memory that counts, fails when told to, and gives no more than it has.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "jali/base/error.h"
#include "jali/device/buffer.h"

namespace jali::testing {
namespace {

using device::Buffer;
using device::Pool;

class CountingMemory final : public device::Memory {
 public:
  explicit CountingMemory(std::size_t size = device::kUnknown) : size_(size) {}
  void* allocate(std::size_t bytes) override {
    if (fail_after == 0) return nullptr;
    if (fail_after > 0) --fail_after;
    if (size_ != device::kUnknown && used + bytes > size_) return nullptr;
    used += bytes;
    ++live;
    return host_->allocate(bytes);
  }
  void free(void* data, std::size_t bytes) noexcept override {
    used -= bytes;
    --live;
    host_->free(data, bytes);
  }
  void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept override {
    host_->fill(data, byte, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    host_->copy(to, from, bytes);
  }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    host_->copy_in(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    host_->copy_out(to, from, bytes);
  }
  std::size_t available() const override {
    return size_ == device::kUnknown ? size_ : size_ - used;
  }
  bool host_accessible() const override { return true; }

  std::atomic<int> fail_after = -1;  // allocations that succeed before all fail; -1: none fails
  std::atomic<std::size_t> used = 0;
  std::atomic<int> live = 0;

 private:
  const std::size_t size_;
  std::shared_ptr<device::Memory> host_ = device::host_memory();
};

bool all(const Buffer& buffer, std::uint8_t byte) {
  const auto* at = static_cast<const std::uint8_t*>(buffer.data());
  return std::all_of(at, at + buffer.bytes(), [&](std::uint8_t x) { return x == byte; });
}

TEST(Pool, ReusesFreedBlocksAndReturnsThemAtTheEnd) {
  auto memory = std::make_shared<CountingMemory>();
  {
    auto pool = Pool::create(false, memory);
    void* first = nullptr;
    {
      Buffer a = pool->allocate(1000);
      first = a.data();
      EXPECT_GE(pool->bytes_in_use(), 1000U);
      EXPECT_EQ(pool->bytes_cached(), 0U);
    }
    EXPECT_EQ(pool->bytes_in_use(), 0U);
    EXPECT_GE(pool->bytes_cached(), 1000U);
    Buffer b = pool->allocate(999);  // of the same class
    EXPECT_EQ(b.data(), first);
    EXPECT_EQ(memory->live, 1);
    {
      Buffer c = pool->allocate(50000);
    }
    EXPECT_GE(pool->peak_bytes(), 51000U);
    pool->trim();
    EXPECT_EQ(memory->live, 1);
    EXPECT_EQ(pool->bytes_cached(), 0U);
    pool->reset_peak();
    EXPECT_EQ(pool->peak_bytes(), pool->bytes_in_use());
  }
  EXPECT_EQ(memory->live, 0);
}

TEST(Pool, OfAHostDoesNotKeepEverySizeForEver) {
  auto memory = std::make_shared<CountingMemory>();
  auto pool = Pool::create(false, memory);
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  std::size_t most = 0;
  for (std::size_t mebibytes = 64; mebibytes < 128; ++mebibytes) {
    const Buffer block = pool->allocate(mebibytes * kMebi);
    most = std::max(most, memory->used.load());
  }
  EXPECT_GT(most, 256 * kMebi);  // some are kept
  EXPECT_LE(most, 128 * kMebi * 3 / 2 + 256 * kMebi + 128 * kMebi);
}

TEST(Pool, ABlockOutlivesTheHandlesOfItsPool) {
  auto memory = std::make_shared<CountingMemory>();
  auto pool = Pool::create(false, memory);
  Buffer a = pool->allocate(100);
  pool.reset();
  std::memset(a.data(), 1, 100);
  EXPECT_EQ(memory->live, 1);
  a = Buffer();
  EXPECT_EQ(memory->live, 0);
}

TEST(Memory, SaysWhatWasAskedAndWhatWouldFit) {
  EXPECT_EQ(
      device::not_allocated(3 << 19, 1 << 10, "tables"),
      "could not allocate 1.5 MiB (1572864 bytes) for tables; 1.0 KiB (1024 bytes) are free, so "
      "that a block of at most that would fit");
  EXPECT_EQ(device::not_allocated(5, device::kUnknown), "could not allocate 5 bytes");
  EXPECT_EQ(device::not_allocated(device::kUnknown, 0, "a program").find("kUnknown"),
            std::string::npos);
#ifdef __linux__
  EXPECT_GT(device::host_memory()->available(), std::size_t{1} << 20);
  EXPECT_LT(device::host_memory()->available(), std::size_t{1} << 50);
#endif
}

TEST(Pool, OutOfMemoryNamesWhatWasAskedAndWhatWouldFit) {
  auto memory = std::make_shared<CountingMemory>(std::size_t{1} << 20);
  auto pool = Pool::create(false, memory);
  Buffer half = pool->allocate(std::size_t{1} << 19);
  try {
    pool->allocate(std::size_t{3} << 19);
    FAIL() << "1.5 MiB of 1 MiB";
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1572864"), std::string::npos) << text;  // asked
    EXPECT_NE(text.find("524288"), std::string::npos) << text;   // free
    EXPECT_NE(text.find("would fit"), std::string::npos) << text;
  }
  EXPECT_EQ(pool->bytes_in_use(), std::size_t{1} << 19);
}

TEST(Pool, GivesCachedBlocksBackBeforeItFails) {
  auto memory = std::make_shared<CountingMemory>(std::size_t{1} << 20);
  auto pool = Pool::create(false, memory);
  {
    Buffer a = pool->allocate(std::size_t{3} << 18), b = pool->allocate(std::size_t{1} << 18);
  }
  EXPECT_EQ(memory->used, std::size_t{1} << 20);
  EXPECT_NO_THROW(pool->allocate(std::size_t{1} << 20));
}

TEST(Pool, AFailureAtAnyAllocationLeavesNothingBehind) {
  constexpr int kBlocks = 12;
  for (int k = 0; k < kBlocks; ++k) {
    auto memory = std::make_shared<CountingMemory>();
    auto pool = Pool::create(false, memory);
    memory->fail_after = k;
    std::vector<Buffer> held;
    EXPECT_THROW(for (int i = 0; i < kBlocks; ++i)
                     held.push_back(pool->allocate(static_cast<std::size_t>(i + 1) * 4096)),
                 OutOfMemory);
    EXPECT_EQ(held.size(), static_cast<std::size_t>(k));
    EXPECT_EQ(memory->live, k);
    held.clear();
    EXPECT_EQ(pool->bytes_in_use(), 0U);
    memory->fail_after = -1;
    EXPECT_NO_THROW(pool->allocate(12345));
    pool.reset();
    EXPECT_EQ(memory->live, 0);
  }
}

TEST(Pool, SecretsAreWipedAndOthersPoisoned) {
  auto memory = std::make_shared<CountingMemory>();
  const auto leftover = [](const std::shared_ptr<Pool>& pool, bool secret) {
    // The byte that the next user of the block finds, plus 1000 if not all bytes are the same.
    {
      Buffer a = pool->allocate(4096, secret);
      std::memset(a.data(), 7, 4096);
    }
    Buffer b = pool->allocate(4096, secret);
    return static_cast<const std::uint8_t*>(b.data())[b.bytes() - 1] +
           (all(b, static_cast<const std::uint8_t*>(b.data())[0]) ? 0 : 1000);
  };
  EXPECT_EQ(leftover(Pool::create(false, memory), false), 7);
  EXPECT_EQ(leftover(Pool::create(false, memory), true), 0);
  EXPECT_EQ(leftover(Pool::create(true, memory), false), 0);
  EXPECT_EQ(leftover(Pool::create(false, memory, true), true), Pool::kPoison);
}

TEST(Pool, ARedirectionHoldsForItsThreadAlone) {
  auto memory = std::make_shared<CountingMemory>();
  auto pool = Pool::create(false, memory), own = Pool::create(false, memory);
  Buffer before = pool->allocate(4096);
  void* const freed = before.data();
  Buffer inside;
  {
    Pool::Redirect redirect(pool, own);
    inside = pool->allocate(4096);
    EXPECT_EQ(own->bytes_in_use(), 4096U);
    before = Buffer();  // kept until the end: not for others yet
    std::thread([&] {
      Buffer other = pool->allocate(4096);
      EXPECT_NE(other.data(), freed);
      EXPECT_EQ(own->bytes_in_use(), 4096U);
    }).join();
    EXPECT_THROW(Pool::Redirect(pool, own), InternalError);
  }
  EXPECT_EQ(pool->bytes_in_use(), 0U);
  EXPECT_EQ(own->bytes_in_use(), 4096U);
  inside = Buffer();
  EXPECT_EQ(own->bytes_in_use(), 0U);
  pool.reset(), own.reset();
  EXPECT_EQ(memory->live, 0);
}

TEST(Pool, ARedirectionKeepsWhatWasRecorded) {
  constexpr std::size_t kUnit = std::size_t{1} << 20;
  auto memory = std::make_shared<CountingMemory>(4 * kUnit);
  auto pool = Pool::create(false, memory), own = Pool::create(false, memory);
  pool->allocate(2 * kUnit);  // and back to the cache
  {
    Pool::Redirect redirect(pool, own);
    pool->allocate(kUnit);
    EXPECT_EQ(own->bytes_cached(), kUnit);
    Buffer large = pool->allocate(3 * kUnit);  // in the place of what the pool has cached
    EXPECT_EQ(pool->bytes_cached(), 0U);
    EXPECT_EQ(own->bytes_cached(), kUnit);
    EXPECT_THROW(pool->allocate(2 * kUnit), OutOfMemory);
    EXPECT_EQ(own->bytes_cached(), kUnit);
  }
  pool.reset(), own.reset();
  EXPECT_EQ(memory->live, 0);
}

TEST(Pool, RegionsHoldWhatIsInUseAtOnce) {
  constexpr std::size_t kUnit = std::size_t{1} << 20;
  auto memory = std::make_shared<CountingMemory>(6 * kUnit);
  auto pool = Pool::of_regions(4 * kUnit, memory);
  {
    Buffer a = pool->allocate(kUnit), b = pool->allocate(2 * kUnit), c = pool->allocate(1000);
    EXPECT_EQ(memory->live, 1);
    EXPECT_EQ(memory->used, 4 * kUnit);
    EXPECT_EQ(pool->bytes_in_use(), 3 * kUnit + 1024);
    EXPECT_EQ(pool->bytes_cached(), kUnit - 1024);
    const void* first = a.data();
    a = Buffer(), b = Buffer();
    Buffer joined = pool->allocate(3 * kUnit);  // where both were
    EXPECT_EQ(joined.data(), first);
    EXPECT_EQ(memory->live, 1);
    Buffer more = pool->allocate(kUnit);  // a region of its own
    EXPECT_EQ(memory->used, 5 * kUnit);
    EXPECT_THROW(pool->allocate(2 * kUnit), OutOfMemory);
    Buffer small = pool->allocate(kUnit - 2048);  // what is left of the first
    EXPECT_EQ(memory->used, 5 * kUnit);
    EXPECT_EQ(pool->bytes_in_use() + pool->bytes_cached(), 5 * kUnit);
    more = Buffer();
    pool->trim();  // the first is in use
    EXPECT_EQ(memory->used, 4 * kUnit);
  }
  EXPECT_EQ(pool->bytes_in_use(), 0U);
  EXPECT_EQ(pool->bytes_cached(), 4 * kUnit);
  pool->trim();
  EXPECT_EQ(memory->live, 0);
  // If the memory does not have the first region, a smaller one is taken.
  pool = Pool::of_regions(7 * kUnit, memory);
  Buffer a = pool->allocate(5 * kUnit);
  EXPECT_EQ(memory->used, 5 * kUnit);
}

TEST(Pool, TellsThePeakOfSomeWork) {
  auto pool = Pool::create();
  {
    const Buffer before = pool->allocate(8192);
  }
  const Buffer held = pool->allocate(1024);
  EXPECT_EQ(pool->peak_of([&] {
    const Buffer a = pool->allocate(2048);
    {
      const Buffer b = pool->allocate(1024);
    }
    const Buffer c = pool->allocate(1024);
  }),
            3072U);
  EXPECT_EQ(pool->peak_bytes(), 8192U);
}

class PoolThreads : public ::testing::TestWithParam<bool> {};

TEST_P(PoolThreads, NeverShareABlock) {
  auto memory = std::make_shared<CountingMemory>();
  auto pool = GetParam() ? Pool::of_regions(1 << 16, memory, /*poison=*/true)
                         : Pool::create(false, memory, /*poison=*/true);
  std::vector<std::thread> threads;
  std::atomic<int> bad = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<Buffer, std::uint8_t>> held;
      for (int i = 0; i < 2000; ++i) {
        if (held.size() > 8 || (random() % 2 == 0 && !held.empty())) {
          const std::size_t at = random() % held.size();
          bad += !all(held[at].first, held[at].second);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        } else {
          const auto mark = static_cast<std::uint8_t>(random());
          held.emplace_back(pool->allocate(64 << random() % 6), mark);
          std::memset(held.back().first.data(), mark, held.back().first.bytes());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(pool->bytes_in_use(), 0U);
  pool.reset();
  EXPECT_EQ(memory->live, 0);
}

INSTANTIATE_TEST_SUITE_P(Pools, PoolThreads, ::testing::Bool());

TEST(Memory, GathersAndScatters) {
  auto memory = device::host_memory();
  constexpr std::size_t kBytes = 64, kRows = 3, kBlocks = 5;
  std::vector<std::vector<std::uint8_t>> from(kBlocks), back(kBlocks);
  std::vector<const void*> sources;
  std::vector<void*> targets;
  std::mt19937 random(1);
  for (std::size_t k = 0; k < kBlocks; ++k) {
    for (std::size_t i = 0; i < kRows * kBytes; ++i) {
      from[k].push_back(static_cast<std::uint8_t>(random()));
    }
    back[k].assign(from[k].size(), 0);
    sources.push_back(from[k].data());
    targets.push_back(back[k].data());
  }
  std::vector<std::uint8_t> all(kBlocks * kRows * kBytes);
  memory->gather(all.data(), sources, kBytes, kRows);
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t k = 0; k < kBlocks; ++k) {
      EXPECT_EQ(0, std::memcmp(&all[(r * kBlocks + k) * kBytes], &from[k][r * kBytes], kBytes));
    }
  }
  memory->scatter(targets, all.data(), kBytes, kRows);
  EXPECT_EQ(from, back);
}

TEST(Memory, CopiesRowsApart) {
  auto memory = device::host_memory();
  std::vector<std::uint8_t> from(60), to(80, 9);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i);
  memory->copy_rows(to.data(), 20, from.data(), 15, 5, 4);
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(to[r * 20 + i], i < 5 ? r * 15 + i : 9);
  }
}

}  // namespace
}  // namespace jali::testing
