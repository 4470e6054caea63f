#include "jali/random/secret_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include "forked.h"

namespace jali::random {
namespace {

static_assert(!std::is_copy_constructible_v<SecretSeed> && !std::is_copy_assignable_v<SecretSeed>);
static_assert(!std::is_convertible_v<Seed, SecretSeed> && !std::is_convertible_v<SecretSeed, Seed>);
static_assert(!std::is_copy_constructible_v<SeedSource>);

Seed expanded(const Seed& root, std::uint64_t stream, std::uint64_t offset) {
  Seed seed;
  Prng prng(root, stream);
  prng.seek(offset);
  prng.fill(seed);
  return seed;
}

std::set<Seed> many(SeedSource& source, std::size_t count) {
  std::set<Seed> seeds;
  for (std::size_t i = 0; i < count; ++i) seeds.insert(source.next().bytes());
  return seeds;
}

TEST(SecretSeed, WipesItselfAndWhatItIsMovedFrom) {
  const Seed secret = os_seed();
  alignas(SecretSeed) unsigned char memory[2][sizeof(SecretSeed)];
  const auto bytes = [&](int at) {
    Seed now;
    const volatile unsigned char* p = memory[at];
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = p[i];
    return now;
  };
  auto* seed = new (memory[0]) SecretSeed(secret);
  EXPECT_EQ(bytes(0), secret);
  auto* other = new (memory[1]) SecretSeed(std::move(*seed));
  EXPECT_EQ(bytes(0), Seed{});
  EXPECT_EQ(bytes(1), secret);
  other->~SecretSeed();
  EXPECT_EQ(bytes(1), Seed{});
}

TEST(SecretSeed, IsWipedByExceptionsToo) {
  const Seed secret = os_seed();
  alignas(SecretSeed) unsigned char memory[sizeof(SecretSeed)];
  const auto end = [](SecretSeed* seed) { seed->~SecretSeed(); };
  try {
    const std::unique_ptr<SecretSeed, decltype(end)> seed(new (memory) SecretSeed(secret), end);
    throw std::runtime_error("on the way");
  } catch (const std::runtime_error&) {
  }
  const volatile unsigned char* p = memory;
  for (std::size_t i = 0; i < sizeof(SecretSeed); ++i) ASSERT_EQ(p[i], 0);
}

TEST(SeedSource, AsksTheSystemEachTime) {
  SeedSource source(std::nullopt, SeedSource::Order::bytes);
  EXPECT_EQ(many(source, 1000).size(), 1000u);
  // Afterwards its memory holds nothing of it, and nothing of a seed that was given before.
  std::vector<std::uint8_t> before(sizeof(source)), after(sizeof(source));
  std::memcpy(before.data(), static_cast<const void*>(&source), sizeof(source));
  many(source, 10);
  std::memcpy(after.data(), static_cast<const void*>(&source), sizeof(source));
  EXPECT_EQ(before, after);
}

TEST(SeedSource, GivesOtherSeedsToEveryChild) {
  constexpr std::size_t kChildren = 20, kEach = 50;
  SeedSource source(std::nullopt, SeedSource::Order::streams);
  source.next();
  const auto children = testing::in_children(kChildren, [&] {
    testing::ForkedBytes out;
    for (const Seed& seed : many(source, kEach)) out.insert(out.end(), seed.begin(), seed.end());
    return out;
  });
  std::set<Seed> seeds = many(source, kEach);
  for (const auto& bytes : children) {
    ASSERT_EQ(bytes.size(), kEach * sizeof(Seed));
    for (std::size_t i = 0; i < kEach; ++i) {
      Seed seed;
      std::copy_n(&bytes[i * sizeof(Seed)], sizeof(Seed), seed.begin());
      seeds.insert(seed);
    }
  }
  EXPECT_EQ(seeds.size(), (kChildren + 1) * kEach);
}

TEST(SeedSource, FollowsARootInItsOrder) {
  const Seed root = os_seed();
  SeedSource streams(root, SeedSource::Order::streams), bytes(root, SeedSource::Order::bytes);
  for (std::uint64_t k = 0; k < 70; ++k) {  // 32 seeds are a group of blocks
    EXPECT_EQ(streams.next().bytes(), expanded(root, k, 0)) << k;
    EXPECT_EQ(bytes.next().bytes(), expanded(root, 0, 32 * k)) << k;
  }
}

// What is published comes from a stream of its own, so that it tells nothing about the seeds and
// leaves them as they are.
TEST(SeedSource, PublishesBytesOfAnotherStream) {
  const Seed root = os_seed();
  for (const auto order : {SeedSource::Order::streams, SeedSource::Order::bytes}) {
    SeedSource source(root, order), alone(root, order);
    for (std::uint64_t k = 0; k < 3; ++k) {
      std::array<std::uint8_t, 16> out{};
      source.fill_public(out);
      const Seed want = expanded(root, ~std::uint64_t{0}, 32 * k);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), want.begin()));
      EXPECT_EQ(source.next().bytes(), alone.next().bytes());
    }
  }
  SeedSource fresh(std::nullopt, SeedSource::Order::streams);
  std::array<std::uint8_t, 16> one{}, two{};
  fresh.fill_public(one), fresh.fill_public(two);
  EXPECT_NE(one, two);
}

TEST(SeedSource, GivesNoSeedOfARootTwiceToThreads) {
  constexpr std::size_t kThreads = 4, kEach = 2000;
  const Seed root = os_seed();
  for (const auto order : {SeedSource::Order::streams, SeedSource::Order::bytes}) {
    SeedSource source(root, order), alone(root, order);
    std::vector<std::set<Seed>> of(kThreads);
    std::vector<std::thread> threads;
    for (auto& own : of) threads.emplace_back([&] { own = many(source, kEach); });
    for (auto& thread : threads) thread.join();
    std::set<Seed> all;
    for (const auto& own : of) all.insert(own.begin(), own.end());
    EXPECT_EQ(all, many(alone, kThreads * kEach));
  }
}

}  // namespace
}  // namespace jali::random
