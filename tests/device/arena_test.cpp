// The blocks of an arena never overlap, and free neighbours join.
#include "jali/device/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "../seeded.h"

namespace jali::testing {
namespace {

using device::Arena;

TEST(Arena, TakesTheSmallestThatFits) {
  std::vector<std::byte> memory(1000);
  Arena arena;
  EXPECT_EQ(arena.take(1), nullptr);
  arena.add({memory.data(), 1000});
  EXPECT_EQ(arena.take(300), memory.data());
  EXPECT_EQ(arena.take(100), memory.data() + 300);
  EXPECT_EQ(arena.take(600), memory.data() + 400);
  EXPECT_EQ(arena.take(1), nullptr);
  arena.give(memory.data(), 300);
  arena.give(memory.data() + 400, 600);
  EXPECT_EQ(arena.take(250), memory.data());
  EXPECT_EQ(arena.take(601), nullptr);
  arena.give(memory.data() + 300, 100);  // between two that are free
  EXPECT_EQ(arena.take(750), memory.data() + 250);
  EXPECT_EQ(arena.free_bytes(), 0U);
}

TEST(Arena, RegionsSideBySideStayApart) {
  std::vector<std::byte> memory(300);
  for (const bool last_first : {false, true}) {
    Arena arena;
    for (int i = 0; i < 3; ++i) arena.add({memory.data() + 100 * i, 100});
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(arena.take(100));
    std::ranges::sort(blocks);
    if (last_first) std::ranges::reverse(blocks);
    for (int i = 0; i < 3; ++i) {
      arena.give(blocks[i], 100);
      EXPECT_EQ(arena.take(101), nullptr);
    }
    void* block = arena.take(1);
    EXPECT_EQ(arena.release().size(), 2U);
    EXPECT_EQ(arena.free_bytes(), 99U);
    arena.give(block, 1);
    EXPECT_EQ(arena.release().size(), 1U);
    EXPECT_EQ(arena.free_bytes(), 0U);
    EXPECT_EQ(arena.take(1), nullptr);
  }
}

TEST(Arena, GivesEveryByteOnce) {
  const std::uint64_t seed = jali::test::test_seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::byte> memory(5000);
  Arena arena;
  arena.add({memory.data(), 3000}), arena.add({memory.data() + 3000, 2000});
  std::map<std::byte*, std::size_t> taken;
  std::size_t bytes = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0) {
      const std::size_t size = 1 + random() % 400;
      auto* block = static_cast<std::byte*>(arena.take(size));
      if (block == nullptr) continue;
      const auto [at, fresh] = taken.emplace(block, size);
      ASSERT_TRUE(fresh);
      if (at != taken.begin()) {
        ASSERT_LE(std::prev(at)->first + std::prev(at)->second, block);
      }
      if (std::next(at) != taken.end()) {
        ASSERT_LE(block + size, std::next(at)->first);
      }
      ASSERT_GE(block, memory.data());
      ASSERT_LE(block + size, memory.data() + 5000);
      ASSERT_FALSE(block < memory.data() + 3000 && block + size > memory.data() + 3000);
      bytes += size;
    } else if (!taken.empty()) {
      const auto at = std::next(taken.begin(), random() % taken.size());
      arena.give(at->first, at->second);
      bytes -= at->second;
      taken.erase(at);
    }
    ASSERT_EQ(arena.free_bytes(), 5000 - bytes);
  }
  for (const auto& [block, size] : taken) arena.give(block, size);
  EXPECT_EQ(arena.take(3000), memory.data());
  EXPECT_EQ(arena.take(2000), memory.data() + 3000);
}

}  // namespace
}  // namespace jali::testing
