// Names of blocks that outlive the blocks.
#include "jali/device/block_ids.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "jali/device/buffer.h"

namespace jali::testing {
namespace {

using device::BlockIds;
using device::Buffer;
using device::Pool;

TEST(BlockIds, ABlockAtTheSameAddressHasAnotherId) {
  const auto pool = Pool::create();
  const auto ids = std::make_shared<BlockIds>();
  pool->watch(ids);
  const void* address = nullptr;
  std::uint64_t id = 0;
  {
    const Buffer a = pool->allocate(100), b = pool->allocate(100);
    address = a.data();
    id = ids->find(address).id;
    EXPECT_EQ(ids->find(static_cast<const std::byte*>(address) + 99).id, id);
    EXPECT_EQ(ids->find(static_cast<const std::byte*>(address) + 99).offset, 99U);
    EXPECT_NE(ids->find(b.data()).id, id);
  }
  EXPECT_FALSE(ids->block_of(address).has_value());
  const Buffer a = pool->allocate(100), b = pool->allocate(100);
  ASSERT_TRUE(a.data() == address || b.data() == address);
  EXPECT_NE(ids->find(address).id, id);
}

TEST(BlockIds, OtherMemoryIsKnownByItsAddressUntilABlockLiesThere) {
  BlockIds ids;
  std::array<std::byte, 256> memory{};
  const auto first = ids.find(memory.data());
  EXPECT_EQ(ids.find(memory.data()).id, first.id);
  EXPECT_NE(ids.find(memory.data() + 64).id, first.id);
  EXPECT_NE(ids.fresh(), first.id);
  EXPECT_FALSE(ids.block_of(memory.data()).has_value());
  ids.added(memory.data(), 128);
  const auto block = ids.find(memory.data() + 64);
  EXPECT_EQ(block.offset, 64U);
  EXPECT_NE(block.id, first.id);
  ids.removed(memory.data());
  EXPECT_NE(ids.find(memory.data()).id, first.id);
}

TEST(BlockIds, SeveralWatchAPoolAndMayGo) {
  const auto pool = Pool::create();
  auto a = std::make_shared<BlockIds>();
  const auto b = std::make_shared<BlockIds>();
  pool->watch(a);
  pool->watch(a);  // counts once
  pool->watch(b);
  {
    const Buffer block = pool->allocate(10);
    EXPECT_TRUE(a->block_of(block.data()).has_value());
    EXPECT_TRUE(b->block_of(block.data()).has_value());
    EXPECT_EQ(a->find(block.data()).id, 0U);
  }
  a.reset();
  const Buffer block = pool->allocate(10);
  EXPECT_TRUE(b->block_of(block.data()).has_value());
}

TEST(BlockIds, ThreadsAllocateAtOnce) {
  const auto pool = Pool::create();
  const auto ids = std::make_shared<BlockIds>();
  pool->watch(ids);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const Buffer a = pool->allocate(64), b = pool->allocate(64);
        const auto x = ids->block_of(a.data()), y = ids->block_of(b.data());
        ASSERT_TRUE(x && y);
        ASSERT_NE(x->id, y->id);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace jali::testing
