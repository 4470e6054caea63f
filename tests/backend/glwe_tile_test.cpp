// The formulas of the GPU's kernel for GLWE encryption, run on the host as its threads run them.
#include "jali/backend/cuda/secret/glwe_tile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "jali/random/prng.h"
#include "tfhe_support.h"

namespace jali::backend::cuda::glwe {
namespace {

using test::u32;
using test::u64;

/// A S by the tiles and threads of the kernel.
template <class Word>
std::vector<Word> tiled_product(const std::vector<Word>& a, const std::vector<std::uint8_t>& s) {
  const auto n = static_cast<unsigned>(a.size());
  const unsigned tile = std::min(n, kMostTile), threads = tile / kEach;
  std::vector<Word> out(n), window(window_words(tile));
  std::vector<std::uint8_t> bits(threads);
  for (unsigned t = 0; t < n / tile; ++t) {
    std::vector<Word> sums(tile);
    for (unsigned i = 0; i < n / tile; ++i) {
      for (unsigned e = 0; e < 2 * tile; ++e) {
        window[place(e)] = window_word(a.data(), n, tile, t, i, e);
      }
      for (unsigned g = 0; g < threads; ++g) bits[g] = packed(&s[i * tile + g * kEach]);
      for (unsigned thread = 0; thread < threads; ++thread) {
        Word sum[kEach];
        std::copy_n(&sums[thread * kEach], kEach, sum);
        add_tile(sum, window.data(), bits.data(), tile, thread);
        std::copy_n(sum, kEach, &sums[thread * kEach]);
      }
    }
    std::copy(sums.begin(), sums.end(), out.begin() + t * tile);
  }
  return out;
}

template <class Word>
void expect_products() {
  JALI_SEEDED(rng);
  for (const unsigned n : {256u, 512u, 1024u, 2048u, 4096u, 8192u}) {
    std::vector<Word> a(n);
    std::vector<u64> wide(n), want(n);
    std::vector<std::uint8_t> s(n);
    for (unsigned i = 0; i < n; ++i) {
      wide[i] = a[i] = static_cast<Word>(rng());
      s[i] = rng() >> 63;
    }
    test::add_times_bits(want, wide, s);
    const std::vector<Word> have = tiled_product(a, s);
    for (unsigned t = 0; t < n; ++t)
      ASSERT_EQ(have[t], static_cast<Word>(want[t])) << n << ", " << t;
  }
}

TEST(GlweTile, GivesTheProductOfWords64) { expect_products<u64>(); }
TEST(GlweTile, GivesTheProductOfWords32) { expect_products<u32>(); }

TEST(GlweTile, DrawsTheErrorsOfTheSampler) {
  JALI_SEEDED(rng);
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(rng());
  for (int bits = 0; bits <= 62; ++bits) {
    random::Prng of_sampler(seed, 5), words(seed, 5);
    std::vector<std::int64_t> want(100);
    random::sample_tuniform(of_sampler, bits, want);
    for (const std::int64_t error : want) {
      u64 u = 0;
      std::uint8_t bytes[8]{};
      words.fill({bytes, bits <= 30 ? std::size_t{4} : std::size_t{8}});
      for (int b = 7; b >= 0; --b) u = u << 8 | bytes[b];
      ASSERT_EQ(static_cast<std::int64_t>(tuniform(u, bits)), error) << bits;
    }
  }
}

TEST(GlweTile, NumbersTheRowsOfKeys) {
  std::uint64_t row = 0;
  for (std::uint64_t bit = 0; bit < 5; ++bit) {
    for (unsigned c = 0; c <= 3; ++c) {
      for (int j = 1; j <= 2; ++j, ++row) {
        const GadgetRow at = gadget_row(row, 3, 2, 7, 32, true);
        EXPECT_EQ(at.bit, bit);
        EXPECT_EQ(at.component, c);
        EXPECT_EQ(at.shift, 32 - 7 * j);
      }
    }
  }
  const GadgetRow packing = gadget_row(11, 3, 2, 7, 64, false);
  EXPECT_EQ(packing.bit, 5u);
  EXPECT_EQ(packing.component, 3u);
  EXPECT_EQ(packing.shift, 64 - 7 * 2);
}

}  // namespace
}  // namespace jali::backend::cuda::glwe
