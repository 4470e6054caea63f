// The product with a binary polynomial against the schoolbook, and every kernel against the portable one.
#include "jali/lwe/secret/product.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "../seeded.h"
#include "jali/base/cpu_features.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/masked_sums.h"

namespace jali::lwe {
namespace {

template <class Word>
class Product : public testing::Test {};
using Words = testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Product, Words);

TYPED_TEST(Product, IsTheSchoolbookProduct) {
  using Word = TypeParam;
  JALI_SEEDED(rng);
  for (const std::size_t n : {128u, 256u, 1024u}) {
    std::vector<std::uint8_t> bits(n);
    std::vector<Word> a(n), acc(n), scratch(2 * n);
    for (auto& x : bits) x = rng() & 1;
    for (auto& x : a) x = static_cast<Word>(rng());
    for (auto& x : acc) x = static_cast<Word>(rng());
    std::vector<Word> expected = acc;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (bits[j] == 0) continue;
        Word& at = expected[(i + j) % n];
        at = static_cast<Word>(i + j < n ? at + a[i] : at - a[i]);
      }
    }
    BinaryProduct<Word>(bits).add(acc, a, scratch);
    EXPECT_EQ(acc, expected) << n;
  }
  EXPECT_THROW(BinaryProduct<Word>(std::vector<std::uint8_t>(100)), InvalidArgument);
}

TYPED_TEST(Product, KernelsAgree) {
  using Word = TypeParam;
  JALI_SEEDED(rng);
  const std::size_t n = 512;
  std::vector<Word> out(n), turned(2 * n), masks(n);
  for (auto& x : out) x = static_cast<Word>(rng());
  for (auto& x : turned) x = static_cast<Word>(rng());
  for (auto& x : masks) x = static_cast<Word>(0) - static_cast<Word>(rng() & 1);
  std::vector<Word> expected = out;
  for (std::size_t t = 0; t < n; ++t) {
    for (std::size_t i = 0; i < n; ++i) expected[t] += masks[i] & turned[n + t - i];
  }
  const auto check = [&](MaskedSums<Word>* sums) {
    std::vector<Word> got = out;
    sums(got.data(), turned.data(), masks.data(), n);
    EXPECT_EQ(got, expected);
  };
  check(masked_sums_portable);
#if defined(__x86_64__)
  if (cpu_features().avx2) check(masked_sums_avx2);
  if (cpu_features().avx512) check(masked_sums_avx512);
#endif
}

}  // namespace
}  // namespace jali::lwe
