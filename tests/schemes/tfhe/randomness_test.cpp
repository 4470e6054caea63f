// Nothing is drawn twice, neither by forked processes, nor by copies of one state, nor by threads.
// Whoever sees two encryptions with the same mask and error learns the difference of their
// messages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "../../lwe/phases.h"
#include "forked.h"
#include "jali/random/prng.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using jali::testing::ForkedBytes;
using jali::testing::in_children;
using random::Seed;
using test::Values;

ForkedBytes bytes_of(const void* data, std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  return {from, from + count};
}
ForkedBytes bytes_of(const Seed& seed) { return {seed.begin(), seed.end()}; }

struct Draw {
  std::string name;
  std::function<ForkedBytes()> bytes;
};

/// Everything that draws randomness. The bytes of two runs are equal if and only if they drew the
/// same.
std::vector<Draw> draws(Client& client, lwe::KeyGenerator& generator) {
  const auto encrypted = [&] { return client.encrypt(Values(16)); };
  return {
      {"mask of an encryption", [=] { return bytes_of(encrypted().data->data.data(), 64); }},
      {"its seed", [=] { return bytes_of(*encrypted().seed); }},
      {"its errors",
       [=, &client] {
         const auto errors = client.errors(encrypted());
         return bytes_of(errors.data(), 8 * errors.size());
       }},
      {"small secret", [&] { return bytes_of(generator.secret_key().small().data(), 128); }},
      {"large secret", [&] { return bytes_of(generator.secret_key().large().data(), 128); }},
      {"name of a key", [&] { return bytes_of(&generator.secret_key().id(), sizeof(KeyId)); }},
      {"seed of a bootstrapping key",
       [&] { return bytes_of(generator.rotation_key(client.secret_key()).rows.seed); }},
      {"seed of a key-switching key",
       [&] { return bytes_of(generator.switch_key(client.secret_key()).seed); }},
      {"errors of a key-switching key",
       [&] {
         const auto key = generator.switch_key(client.secret_key());
         const auto block = lwe::expand(*device::Pool::create(), key);
         std::vector<std::uint64_t> phases;
         for (std::size_t i = 0; i < key.count; ++i) {
           phases.push_back(test::lwe_phase(block.view(), i, client.secret_key().small()));
         }
         return bytes_of(phases.data(), 8 * phases.size());
       }},
      {"seed of a packing key",
       [&] { return bytes_of(generator.packing_key(client.secret_key()).seed); }},
  };
}

test::TfheShape shape() {
  test::TfheShape out;
  out.n = 128;
  out.message_bits = out.carry_bits = 1;
  return out;
}

TEST(TfheRandomness, DiffersWheneverOneStateIsContinued) {
  constexpr std::size_t kTimes = 10;
  Client client(test::insecure_params(shape()));
  lwe::KeyGenerator generator(client.params());
  for (const Draw& draw : draws(client, generator)) {
    const ForkedBytes before = draw.bytes();
    // All children begin with the same memory, like machines that are restored from one snapshot.
    std::vector<ForkedBytes> all = in_children(kTimes, draw.bytes);
    all.push_back(before);
    all.push_back(draw.bytes());
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), kTimes + 2) << draw.name;
  }
}

TEST(TfheRandomness, NoSeedRepeatsInThreads) {
  constexpr std::size_t kThreads = 4, kEach = 200;
  const ParamsPtr params = test::insecure_params();
  for (const bool rooted : {false, true}) {
    Client client(params, 1, rooted ? std::optional<Seed>(random::os_seed()) : std::nullopt);
    std::vector<std::vector<Seed>> seeds(kThreads);
    std::vector<std::thread> threads;
    for (auto& own : seeds) {
      threads.emplace_back([&] {
        for (std::size_t i = 0; i < kEach; ++i) own.push_back(*client.encrypt(Values{1}).seed);
      });
    }
    for (auto& thread : threads) thread.join();
    std::set<Seed> all;
    for (const auto& own : seeds) all.insert(own.begin(), own.end());
    EXPECT_EQ(all.size(), kThreads * kEach) << rooted;
  }
}

// A seed that was published is the seed of no error and of no secret, also if all of them follow
// from one root.
TEST(TfheRandomness, PublishedSeedsGiveMasksAlone) {
  Client client(test::insecure_params(shape()), 1, random::os_seed());
  const lwe::EvaluationKeys keys = client.evaluation_keys(true);
  const Ciphertext x = client.encrypt(Values(16));
  const Seed published[] = {keys.rotation.rows.seed, keys.switching.seed, keys.packing->seed,
                            *x.seed};
  const auto errors = client.errors(x);
  for (const Seed& seed : published) {
    for (std::uint64_t stream = 0; stream < 4; ++stream) {
      std::vector<std::uint8_t> bits(128);
      random::Prng prng(seed, stream);
      random::sample_bits(prng, bits);
      EXPECT_NE(std::memcmp(bits.data(), client.secret_key().small().data(), 128), 0);
      EXPECT_NE(std::memcmp(bits.data(), client.secret_key().large().data(), 128), 0);
    }
    std::size_t equal = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      std::int64_t error = 0;
      random::Prng prng(seed, i);
      random::sample_tuniform(prng, client.params()->noise_bits(), {&error, 1});
      equal += error == std::llround(errors[i] * static_cast<double>(client.params()->step()));
    }
    EXPECT_LT(equal, 4u);  // 2^-20 each
  }
}

}  // namespace
}  // namespace jali::tfhe
