// Compares every reduction with 128-bit division, at the ends of its range and at random.
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "../seeded.h"
#include "jali/arith/barrett.h"
#include "jali/arith/bit_reverse.h"
#include "jali/arith/modulus.h"
#include "jali/arith/primes.h"
#include "jali/arith/shoup.h"
#include "jali/arith/word.h"

namespace jali::arith {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Three primes of a word: the largest, a middle one and a small one.
std::vector<u64> primes_of(Word word) {
  const int bits = word_prime_bits(word);
  std::vector<u64> primes;
  for (const int b : {bits, bits - 1, (bits + 18) / 2, 18}) {
    primes.push_back(prime_below(u64{1} << b, 1 << 11).value());
  }
  return primes;
}

/// Both ends of [0, bound), their neighbours, some more numbers, and random ones.
std::vector<u64> values_below(uint128 bound, const std::vector<u64>& also, std::mt19937_64& rng) {
  std::vector<u64> values;
  for (const u64 v : {u64{0}, u64{1}, u64{2}, static_cast<u64>(bound - 1),
                      static_cast<u64>(bound - 2), static_cast<u64>(bound / 2)}) {
    values.push_back(v);
  }
  for (const u64 v : also) {
    if (v < bound) values.push_back(v);
  }
  for (int i = 0; i < 60; ++i)
    values.push_back(static_cast<u64>(((static_cast<uint128>(rng()) << 64) | rng()) % bound));
  return values;
}

u64 product(u64 a, u64 b, u64 q) { return static_cast<u64>(static_cast<uint128>(a) * b % q); }

TEST(Shoup, MultipliesAnyWordByAConstant) {
  JALI_SEEDED(rng);
  for (const auto& [word, beta_bits] :
       {std::pair{Word::w32, 32}, {Word::w52, 52}, {Word::w52, 64}, {Word::w64, 64}}) {
    const uint128 beta = static_cast<uint128>(1) << beta_bits;
    for (const u64 q : primes_of(word)) {
      for (const u64 w : values_below(q, {q - 1}, rng)) {
        const ShoupConstant c = shoup_constant(w, q, beta_bits);
        for (const u64 x :
             values_below(beta, {q - 1, q, q + 1, 2 * q - 1, 2 * q, 4 * q - 1}, rng)) {
          const uint128 quotient = (static_cast<uint128>(x) * c.quotient) >> beta_bits;
          const uint128 r = static_cast<uint128>(x) * w - quotient * q;
          ASSERT_LT(r, 2 * q);
          ASSERT_EQ(static_cast<u64>(r % q), product(x, w, q)) << x << " * " << w << " mod " << q;
          if (beta_bits == 64) {
            ASSERT_EQ(mul_shoup_lazy(x, c, q), static_cast<u64>(r));
            ASSERT_EQ(mul_shoup(x, c, q), product(x, w, q));
          }
        }
      }
    }
  }
}

TEST(Barrett, ReducesUpToTwiceTheLengthOfTheModulus) {
  JALI_SEEDED(rng);
  std::vector<u64> moduli = {
      2, 3, 4, 5, 7, 8, 9, (u64{1} << 60) - 1, u64{1} << 60, (u64{1} << 61) - 1};
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const u64 q : primes_of(word)) moduli.push_back(q);
  }
  for (const u64 q : moduli) {
    const Barrett barrett(q);
    const uint128 end = static_cast<uint128>(1) << (2 * std::bit_width(q));
    const auto check = [&](uint128 x) {
      ASSERT_LT(barrett.reduce_lazy(x), 3 * q);
      ASSERT_EQ(barrett.reduce(x), static_cast<u64>(x % q)) << q;
    };
    const uint128 square = static_cast<uint128>(q) * q;
    for (const uint128 x : {uint128{0}, uint128{1}, uint128{q} - 1, uint128{q}, uint128{q} + 1,
                            square - 1, square, end - 1, end - 2}) {
      if (x < end) check(x);
    }
    for (int i = 0; i < 2000; ++i) check(((static_cast<uint128>(rng()) << 64) | rng()) % end);
    // Multiples and their neighbours, at which the quotient is most easily off by one.
    for (int i = 0; i < 500; ++i) {
      const uint128 multiple = (((static_cast<uint128>(rng()) << 64) | rng()) % end) / q * q;
      check(multiple);
      if (multiple > 0) check(multiple - 1);
    }
  }
}

TEST(Modulus, AgreesWithDivision) {
  JALI_SEEDED(rng);
  std::vector<u64> moduli = {2, 3, 4, 5, (u64{1} << 61) - 1, u64{1} << 60};
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const u64 q : primes_of(word)) moduli.push_back(q);
  }
  for (const u64 q : moduli) {
    const Modulus m(q);
    EXPECT_EQ(m.value(), q);
    for (const u64 a : values_below(q, {}, rng)) {
      if (a >= q) continue;  // of the listed ones, for the smallest moduli
      EXPECT_EQ(m.neg(a), (q - a) % q);
      for (const u64 b : values_below(q, {}, rng)) {
        if (b >= q) continue;
        ASSERT_EQ(m.add(a, b), static_cast<u64>((static_cast<uint128>(a) + b) % q));
        ASSERT_EQ(m.sub(a, b), static_cast<u64>((static_cast<uint128>(a) + q - b) % q));
        ASSERT_EQ(m.mul(a, b), product(a, b, q));
        ASSERT_EQ(mul_shoup(a, m.shoup(b), q), product(a, b, q));
      }
    }
    for (const u64 x : {u64{0}, q - 1, q, q + 1, ~u64{0}, ~u64{0} - 1, rng(), rng(), rng()}) {
      EXPECT_EQ(m.reduce(x), x % q);
      for (const u64 high : {u64{0}, u64{1}, q - 1, q, ~u64{0}, rng()}) {
        const uint128 wide = (static_cast<uint128>(high) << 64) | x;
        EXPECT_EQ(m.reduce(wide), static_cast<u64>(wide % q));
      }
      const auto s = static_cast<std::int64_t>(x);
      const int128 r = static_cast<int128>(s) % static_cast<int128>(q);
      EXPECT_EQ(m.reduce_signed(s), static_cast<u64>(r < 0 ? r + static_cast<int128>(q) : r));
    }
    EXPECT_EQ(m.reduce_signed(INT64_MIN), (q - (u64{1} << 63) % q) % q);
  }
}

TEST(Modulus, PowersAndInverses) {
  JALI_SEEDED(rng);
  for (const u64 q : primes_of(Word::w64)) {
    const Modulus m(q);
    EXPECT_EQ(m.pow(0, 0), 1u);
    EXPECT_EQ(m.pow(0, 5), 0u);
    for (int i = 0; i < 50; ++i) {
      const u64 a = 1 + rng() % (q - 1);
      EXPECT_EQ(m.pow(a, q - 1), 1u);  // Fermat
      EXPECT_EQ(m.mul(a, m.inverse(a)), 1u);
      EXPECT_EQ(m.inverse(a), m.pow(a, q - 2));
      u64 slow = 1;
      for (u64 e = 0; e < 20; ++e, slow = product(slow, a, q)) EXPECT_EQ(m.pow(a, e), slow);
    }
    EXPECT_EQ(m.inverse(0), 0u);
  }
  EXPECT_EQ(Modulus(12).inverse(8), 0u);  // has none
  EXPECT_EQ(Modulus(12).inverse(7), 7u);
}

TEST(Modulus, IsConstexpr) {
  constexpr Modulus m(65537);
  static_assert(m.mul(65536, 65536) == 1);
  static_assert(m.pow(3, 65536) == 1);
  static_assert(m.mul(m.inverse(12345), 12345) == 1);
  static_assert(m.reduce_signed(-1) == 65536);
  static_assert(Barrett(65537).reduce(65537 * uint128{65537}) == 0);
}

TEST(BitReverse, ReversesAndIsAnInvolution) {
  EXPECT_EQ(bit_reverse(0, 0), 0u);
  EXPECT_EQ(bit_reverse(1, 1), 1u);
  EXPECT_EQ(bit_reverse(1, 4), 8u);
  EXPECT_EQ(bit_reverse(0b0011, 4), 0b1100u);
  EXPECT_EQ(bit_reverse(1, 32), u32{1} << 31);
  for (int bits = 1; bits <= 12; ++bits) {
    std::vector<bool> seen(std::size_t{1} << bits);
    for (u32 x = 0; x < seen.size(); ++x) {
      const u32 r = bit_reverse(x, bits);
      ASSERT_LT(r, seen.size());
      EXPECT_FALSE(seen[r]);
      seen[r] = true;
      EXPECT_EQ(bit_reverse(r, bits), x);
    }
  }
}

}  // namespace
}  // namespace jali::arith
