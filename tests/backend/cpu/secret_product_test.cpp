// Products with binary polynomials against the schoolbook, and every kernel against the plainest
// sum.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "../../seeded.h"
#include "jali/backend/cpu/secret/binary_product.h"
#include "jali/backend/cpu/secret/masked_sums.h"
#include "jali/backend/cpu/secret/ntt_product.h"
#include "jali/backend/secret/small_product.h"
#include "jali/base/cpu_features.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {
namespace {

using Words = std::vector<std::uint64_t>;

/// acc += sum_c a_c S_c by the schoolbook.
void add_schoolbook(Words& acc, const Words& a, const std::vector<std::uint8_t>& bits) {
  const std::size_t n = acc.size();
  for (std::size_t c = 0; c < a.size() / n; ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (bits[c * n + j] == 0) continue;
        const std::uint64_t x = a[c * n + i];
        acc[(i + j) % n] += i + j < n ? x : 0 - x;
      }
    }
  }
}

Words random_words(std::mt19937_64& rng, std::size_t count) {
  Words out(count);
  for (auto& x : out) x = rng();
  return out;
}

std::vector<std::uint8_t> random_bits(std::mt19937_64& rng, std::size_t count) {
  std::vector<std::uint8_t> out(count);
  for (auto& x : out) x = rng() & 1;
  return out;
}

TEST(BinaryProduct, IsTheSchoolbookProduct) {
  JALI_SEEDED(rng);
  for (const std::size_t n : {64u, 256u, 1024u}) {
    const auto bits = random_bits(rng, n);
    const Words a = random_words(rng, n);
    Words acc = random_words(rng, n), expected = acc;
    add_schoolbook(expected, a, bits);
    BinaryProduct(bits).add(acc, a);
    EXPECT_EQ(acc, expected) << n;
  }
  EXPECT_THROW(BinaryProduct(std::vector<std::uint8_t>(100)), InvalidArgument);
}

TEST(BinaryProduct, KernelsAgree) {
  JALI_SEEDED(rng);
  const std::size_t n = 256;
  const Words out = random_words(rng, n), turned = random_words(rng, 2 * n);
  Words masks = random_words(rng, n), expected = out;
  for (auto& x : masks) x = 0 - (x & 1);
  for (std::size_t t = 0; t < n; ++t) {
    for (std::size_t i = 0; i < n; ++i) expected[t] += masks[i] & turned[n + t - i];
  }
  const auto check = [&](MaskedSums* sums) {
    Words got = out;
    sums(got.data(), turned.data(), masks.data(), n);
    EXPECT_EQ(got, expected);
  };
  check(masked_sums_portable);
#if defined(__x86_64__)
  if (cpu_features().avx2) check(masked_sums_avx2);
  if (cpu_features().avx512) check(masked_sums_avx512);
#endif
}

TEST(NttProduct, IsTheSchoolbookProduct) {
  JALI_SEEDED(rng);
  for (const std::size_t n : {1024u, 2048u}) {
    for (const std::size_t k : {1u, 3u}) {
      const auto bits = random_bits(rng, k * n);
      Words a = random_words(rng, k * n);
      a[0] = ~std::uint64_t{0};
      Words acc = random_words(rng, n), expected = acc;
      add_schoolbook(expected, a, bits);
      const NttRing ring(n);
      NttProduct(ring, bits).add(acc, a);
      EXPECT_EQ(acc, expected) << n << " " << k;
    }
  }
}

// The largest and the smallest coefficients that there can be: all bits set, all words of ones.
TEST(NttProduct, HoldsTheLargestCoefficients) {
  for (const std::size_t n : {1024u, 65536u}) {
    for (const std::size_t k : {1u, 16u}) {
      const std::vector<std::uint8_t> bits(k * n, 1);
      const Words a(k * n, ~std::uint64_t{0});
      Words acc(n);
      const NttRing ring(n);
      NttProduct(ring, bits).add(acc, a);
      for (std::size_t t = 0; t < n; ++t) {
        // k (t + 1) words of -1, less k (N - 1 - t) of them, modulo 2^64.
        ASSERT_EQ(acc[t], std::uint64_t{0} - k * (t + 1) + k * (n - 1 - t)) << n << " " << k;
      }
    }
  }
}

TEST(NttProduct, AgreesWithRotationsOnSeveralThreads) {
  JALI_SEEDED(rng);
  const std::size_t n = 4096;
  const auto bits = random_bits(rng, n);
  const NttRing ring(n);
  const NttProduct product(ring, bits);
  const BinaryProduct plain(bits);
  std::vector<Words> a, got(4, Words(n));
  for (int i = 0; i < 4; ++i) a.push_back(random_words(rng, n));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { product.add(got[i], a[i]); });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < 4; ++i) {
    Words expected(n);
    plain.add(expected, a[i]);
    EXPECT_EQ(got[i], expected);
  }
}

TEST(SmallFactors, AreDifferencesOfBinaryOnesAtEverySize) {
  JALI_SEEDED(rng);
  for (const std::size_t n : {256u, 512u, 1024u, 2048u}) {
    for (const std::size_t k : {1u, 3u}) {
      const auto plus = random_bits(rng, k * n), minus = random_bits(rng, k * n);
      const Words a = random_words(rng, k * n);
      Words acc = random_words(rng, n), expected = acc;
      add_schoolbook(expected, a, plus);
      for (auto& x : expected) x = 0 - x;
      add_schoolbook(expected, a, minus);
      for (auto& x : expected) x = 0 - x;
      const SmallRing ring{PolynomialSize(n)};
      SmallFactors(ring, plus, minus).add_products(acc, a);
      EXPECT_EQ(acc, expected) << n << ", " << k;
    }
  }
}

}  // namespace
}  // namespace jali::backend::cpu
