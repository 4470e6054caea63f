#include "jali/arith/primes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "jali/base/error.h"

namespace jali::arith {
namespace {

TEST(Primes, AgreeWithASieve) {
  constexpr std::uint64_t kLimit = 200000;
  std::vector<bool> composite(kLimit, false);
  for (std::uint64_t i = 2; i < kLimit; ++i) {
    ASSERT_EQ(is_prime(i), !composite[i]) << i;
    if (!composite[i]) {
      for (std::uint64_t j = i * i; j < kLimit; j += i) composite[j] = true;
    }
  }
  EXPECT_FALSE(is_prime(0));
  EXPECT_FALSE(is_prime(1));
}

TEST(Primes, LargeKnownCases) {
  EXPECT_TRUE(is_prime(18446744073709551557u));   // the largest below 2^64
  EXPECT_TRUE(is_prime(2305843009213693951u));    // 2^61 - 1
  EXPECT_FALSE(is_prime(18446744073709551615u));  // 2^64 - 1
  // Strong pseudoprimes to many bases: OEIS A014233.
  for (std::uint64_t n : {2047u, 1373653u, 25326001u}) EXPECT_FALSE(is_prime(n));
  for (std::uint64_t n : {std::uint64_t{3215031751}, 2152302898747u, 3474749660383u,
                          341550071728321u, 3825123056546413051u}) {
    EXPECT_FALSE(is_prime(n));
  }
  // The two largest primes below 2^32.
  EXPECT_FALSE(is_prime(std::uint64_t{4294967291} * 4294967279u));
}

TEST(Primes, StreamsAreCompleteAndOrdered) {
  constexpr std::uint64_t kM = 1 << 11;
  const std::uint64_t low = 1 << 20, high = 1 << 22, target = 2500001;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t p = low; p < high; ++p) {
    if (p % kM == 1 && is_prime(p)) expected.push_back(p);
  }
  PrimesNear near(target, kM, low, high);
  std::vector<std::uint64_t> found;
  std::uint64_t last = 0;
  while (auto p = near.next()) {
    const std::uint64_t distance = *p > target ? *p - target : target - *p;
    EXPECT_GE(distance, last);
    last = distance;
    found.push_back(*p);
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);

  std::vector<std::uint64_t> downwards;
  for (auto p = prime_below(high, kM, low); p; p = prime_below(*p, kM, low))
    downwards.push_back(*p);
  std::reverse(downwards.begin(), downwards.end());
  EXPECT_EQ(downwards, expected);
  std::vector<std::uint64_t> upwards;
  for (auto p = prime_from(low, kM, high); p; p = prime_from(*p + 1, kM, high))
    upwards.push_back(*p);
  EXPECT_EQ(upwards, expected);
}

TEST(Primes, BoundsAreExact) {
  EXPECT_NE(prime_below(7681, 512), 7681u);
  EXPECT_EQ(prime_from(7681, 512, 7682), 7681u);
  EXPECT_EQ(prime_from(7682, 512, 7683), std::nullopt);
  EXPECT_EQ(prime_below(7682, 512), 7681u);
  EXPECT_EQ(prime_below(1, 2), std::nullopt);
  EXPECT_EQ(prime_below(100, 512), std::nullopt);
}

std::uint64_t power(std::uint64_t a, std::uint64_t e, std::uint64_t q) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t r = 1;
  for (; e != 0; e >>= 1, a = static_cast<std::uint64_t>(static_cast<Wide>(a) * a % q)) {
    if (e & 1) r = static_cast<std::uint64_t>(static_cast<Wide>(r) * a % q);
  }
  return r;
}

TEST(Primes, RootIsTheSmallestPrimitiveOne) {
  for (std::uint64_t q : {7681u, 12289u}) {
    for (std::uint64_t order = 2; order <= 512; order *= 2) {
      std::uint64_t x = 2;
      while (power(x, order / 2, q) != q - 1) ++x;
      EXPECT_EQ(primitive_root(q, order), x) << q << " " << order;
    }
  }
  const std::uint64_t order = 1 << 18;
  const auto q = prime_below(std::uint64_t{1} << 61, order);
  ASSERT_TRUE(q);
  EXPECT_EQ(power(primitive_root(*q, order), order / 2, *q), *q - 1);
  EXPECT_THROW(primitive_root(7681, 1024), InvalidArgument);
  EXPECT_THROW(primitive_root(7681 * 12289u, 512), InvalidArgument);
  EXPECT_THROW(primitive_root(7681, 3), InvalidArgument);
}

}  // namespace
}  // namespace jali::arith
