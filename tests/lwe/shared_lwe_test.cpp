// Ciphertexts that copies share, which may be a seed and bodies.
#include "jali/lwe/shared_lwe.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "../seeded.h"

namespace jali::lwe {
namespace {

SeededLwe random_rows(std::mt19937_64& rng, Torus torus, std::size_t dimension, std::size_t count) {
  SeededLwe out{{}, torus, LweDimension(dimension), count, {}};
  for (auto& byte : out.seed) byte = static_cast<std::uint8_t>(rng());
  const std::size_t bytes = count * backend::torus_bytes(torus);
  out.bodies = device::Pool::create()->allocate(bytes);
  auto* const at = static_cast<std::uint8_t*>(out.bodies.data());
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(rng());
  return out;
}

/// By the definition in lwe/blocks.h.
std::vector<std::uint8_t> words_of(const SeededLwe& rows) {
  std::vector<std::uint8_t> out;
  const std::size_t word = backend::torus_bytes(rows.torus);
  const auto* body = static_cast<const std::uint8_t*>(rows.bodies.data());
  for (std::size_t i = 0; i < rows.count; ++i, body += word) {
    std::vector<std::uint8_t> mask(rows.dimension.value * word);
    random::Prng(rows.seed, i).fill(mask);
    out.insert(out.end(), mask.begin(), mask.end());
    out.insert(out.end(), body, body + word);
  }
  return out;
}

TEST(SharedLwe, HasTheWordsOfItsSeed) {
  JALI_SEEDED(rng);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const std::size_t count : {0, 1, 37}) {
      SeededLwe rows = random_rows(rng, torus, 21, count);
      const auto want = words_of(rows);
      const SharedLwe x(std::move(rows)), copy = x;
      ASSERT_TRUE(x);
      EXPECT_EQ(x->torus, torus);
      EXPECT_EQ(x->dimension, LweDimension(21));
      EXPECT_EQ(x->count, count);
      ASSERT_EQ(x->bytes(), want.size());
      EXPECT_TRUE(want.empty() || std::memcmp(x->data.data(), want.data(), want.size()) == 0);
      EXPECT_EQ(&*copy, &*x) << "copies share them";
      EXPECT_EQ(copy.seeded(), x.seeded());
      EXPECT_NE(x.seeded(), nullptr) << "the seed stays";
    }
  }
}

TEST(SharedLwe, IsWhatItWasMadeOf) {
  const SharedLwe none;
  EXPECT_FALSE(none);
  EXPECT_TRUE(none == nullptr);
  EXPECT_EQ(none.block(), nullptr);
  const auto block =
      std::make_shared<LweBlock>(make_lwe(*device::Pool::create(), Torus::t64, LweDimension(3), 2));
  const SharedLwe x = block;
  EXPECT_TRUE(x);
  EXPECT_EQ(x.block(), block);
  EXPECT_EQ(&*x, block.get());
  EXPECT_EQ(x.seeded(), nullptr);
}

TEST(SharedLwe, ThreadsGetTheSameWords) {
  JALI_SEEDED(rng);
  for (int round = 0; round < 50; ++round) {
    SeededLwe rows = random_rows(rng, Torus::t64, 5, 9);
    const auto want = words_of(rows);
    std::shared_ptr<const LweBlock> got[4];
    {
      const SharedLwe x(std::move(rows));
      std::vector<std::thread> threads;
      for (auto& block : got) threads.emplace_back([x, &block] { block = x.block(); });
      for (auto& thread : threads) thread.join();
    }
    // They outlive what they came from.
    for (const auto& block : got) {
      EXPECT_EQ(block.get(), got[0].get());
      EXPECT_EQ(std::memcmp(block->data.data(), want.data(), want.size()), 0);
    }
  }
}

}  // namespace
}  // namespace jali::lwe
