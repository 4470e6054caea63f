// Generators and working memory leave nothing behind, whichever instruction set made the blocks.
// This is a program of its own, because it replaces chacha20_best.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "jali/base/cpu_features.h"
#include "jali/base/secret_vector.h"
#include "jali/random/chacha.h"
#include "jali/random/prng.h"
#include "process_memory.h"
#include "sanitized.h"

namespace jali::random {

namespace {

ChaChaFn* chosen = chacha20_portable;

}  // namespace

ChaChaFn* chacha20_best() { return chosen; }

namespace {

using testing::found_after;
using testing::Needle;
using testing::needles;
using Names = std::vector<std::string>;

class KernelResidue : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (backend::test::kSanitized) GTEST_SKIP() << testing::kNotSearched;
    chosen = chacha20_portable;
#if defined(__x86_64__)
    if (GetParam() == "avx2") {
      if (!cpu_features().avx2) GTEST_SKIP() << "no AVX2 here";
      chosen = chacha20_avx2;
    } else if (GetParam() == "avx512") {
      if (!cpu_features().avx512) GTEST_SKIP() << "no AVX-512 here";
      chosen = chacha20_avx512;
    }
#else
    if (GetParam() != "portable") GTEST_SKIP() << "no such kernel here";
#endif
  }
};

TEST_P(KernelResidue, NothingOfTheSeedOrTheStream) {
  // The thread that is searched computes the seed from a root, so that the test itself has only the
  // root.
  const Seed root = os_seed();
  const auto seed_of = [&](std::uint64_t k) {
    Seed seed;
    Prng(root, k).fill(seed);
    return seed;
  };
  std::vector<std::function<void(Prng&)>> samplers = {
      [](Prng& prng) {
        std::uint8_t byte[1];
        prng.fill(byte);
      },
      [](Prng& prng) { prng.next_u64(); },
      [](Prng& prng) { prng.seek(100); },
  };
  static std::vector<std::int64_t> out(1024);
  static std::vector<std::uint64_t> residues(1024);
  samplers.push_back([](Prng& prng) { sample_error(prng, out); });
  samplers.push_back([](Prng& prng) { sample_ternary(prng, out); });
  samplers.push_back([](Prng& prng) { sample_sparse_ternary(prng, 100, out); });
  samplers.push_back([](Prng& prng) { sample_gaussian(prng, 0x1p40, out); });
  samplers.push_back([](Prng& prng) { sample_uniform(prng, 1125899904679937, residues); });
  for (std::uint64_t k = 0; k < samplers.size(); ++k) {
    const bool gives_its_stream = k + 1 == samplers.size();  // its residues are words of the stream
    const auto wanted = needles([&](testing::Secrets& s) {
      s.add_seed("seed", seed_of(k));
      if (!gives_its_stream) s.add_stream("stream", seed_of(k), 5);
    });
    EXPECT_EQ(found_after(wanted,
                          [&] {
                            Seed seed = seed_of(k);
                            {
                              Prng prng(seed, 5);
                              samplers[k](prng);
                            }
                            wipe(seed.data(), seed.size());
                          }),
              Names{})
        << "sampler " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelResidue, ::testing::Values("portable", "avx2", "avx512"),
                         [](const auto& info) { return info.param; });

/// The first 32 bytes of a block full of `value`.
Needle filled(std::uint64_t value) {
  std::uint64_t words[4] = {value, value, value, value};
  std::uint8_t masked[sizeof(words)];
  std::memcpy(masked, words, sizeof(words));
  for (auto& byte : masked) byte = Needle::mask(byte);
  wipe(words, sizeof(words));
  return {"words", masked};
}

TEST(SecretVector, IsWipedHoweverItEnds) {
  if (backend::test::kSanitized) GTEST_SKIP() << testing::kNotSearched;
  // The value is written in such a way that it is nowhere in memory except in the vector.
  Prng prng(os_seed(), 0);
  std::uint64_t mask = prng.next_u64(), masked = prng.next_u64();
  const auto value = [&] { return mask ^ masked; };
  const std::vector<Needle> needles{filled(value())};
  const auto hold = [](const void* data) { asm volatile("" : : "r"(data) : "memory"); };
  // The search finds what a plain vector leaves.
  EXPECT_FALSE(found_after(needles, [&] {
                 std::vector<std::uint64_t> words(1000, value());
                 hold(words.data());
               }).empty());
  mask = prng.next_u64();
  const std::vector<Needle> others{filled(value())};
  EXPECT_TRUE(found_after(others, [&] {
                {
                  SecretVector<std::uint64_t> words(1000, value());
                  words.resize(100000, value());  // moves
                  hold(words.data());
                }
                try {
                  SecretVector<std::uint64_t> words(1000, value());
                  hold(words.data());
                  throw std::runtime_error("on the way");
                } catch (const std::runtime_error&) {
                }
              }).empty());
}

}  // namespace
}  // namespace jali::random
