// Compares polynomials, and the conversion of constants to residues and back, with big integers.
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "jali/base/error.h"
#include "jali/ring/poly.h"
#include "support.h"

namespace jali::ring::test {
namespace {

using backend::ref::Natural;
using backend::test::below;
using backend::test::PrimeList;
using backend::test::primes_below;
using backend::test::primes_for;
using backend::test::range;
using backend::test::test_seed;
using u64 = std::uint64_t;

constexpr std::size_t kN = 16, kPrimes = 7;

void set(Poly& x, std::size_t limb, std::size_t b, std::size_t k, u64 value) {
  if (x.word() == Word::w32) {
    static_cast<std::uint32_t*>(x.row(limb, b))[k] = static_cast<std::uint32_t>(value);
  } else {
    static_cast<u64*>(x.row(limb, b))[k] = value;
  }
}

std::shared_ptr<const Ring> make_ring(Word word, std::size_t n, std::vector<u64> primes) {
  return std::make_shared<Ring>(backend::make_ref_engine({word, n, std::move(primes), 1, ""}));
}

class RingTest : public testing::TestWithParam<Word> {
 protected:
  void fill(Poly& x) {
    for (std::size_t i = 0; i < x.limbs(); ++i) {
      for (std::size_t b = 0; b < x.batch(); ++b) {
        for (std::size_t k = 0; k < x.n(); ++k) {
          set(x, i, b, k, below(rng_, ring_->prime(x.primes()[i])));
        }
      }
    }
  }
  static bool equal(const Poly& a, const Poly& b) {
    return std::ranges::equal(a.primes(), b.primes()) && a.batch() == b.batch() &&
           a.form() == b.form() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  }

  const u64 seed_ = test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};
  std::shared_ptr<const Ring> ring_ =
      make_ring(GetParam(), kN, primes_for(GetParam(), kN, kPrimes));
};
INSTANTIATE_TEST_SUITE_P(Words, RingTest, testing::Values(Word::w32, Word::w52, Word::w64),
                         [](const auto& info) { return std::string(word_name(info.param)); });

TEST_P(RingTest, ShapesOfPolynomials) {
  const Poly empty;
  EXPECT_TRUE(empty.empty());
  const PrimeList primes = {0, 2, 5};
  Poly x = ring_->make(primes, 3, Form::coeff);
  EXPECT_FALSE(x.empty());
  EXPECT_EQ(x.limbs(), 3U);
  EXPECT_EQ(x.n(), kN);
  EXPECT_EQ(x.batch(), 3U);
  EXPECT_EQ(x.word(), GetParam());
  EXPECT_EQ(x.form(), Form::coeff);
  EXPECT_EQ(x.bytes(), 3 * 3 * kN * word_bytes(GetParam()));
  EXPECT_TRUE(std::ranges::equal(x.primes(), primes));
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t k = 0; k < kN; ++k) set(x, i / 3, i % 3, k, i * kN + k);
  }
  // Rows lie (limb, batch, coefficient), one after the other.
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(static_cast<std::byte*>(x.row(i / 3, i % 3)) - static_cast<std::byte*>(x.data()),
              static_cast<std::ptrdiff_t>(i * x.row_bytes()));
    for (std::size_t k = 0; k < kN; ++k) EXPECT_EQ(x.at(i / 3, i % 3, k), i * kN + k);
  }
  const backend::View head = x.head(2);
  EXPECT_EQ(head.data, x.data());
  EXPECT_TRUE(std::ranges::equal(head.primes, PrimeList{0, 2}));
  EXPECT_EQ(head.batch, 3U);
  EXPECT_THROW(ring_->make(primes, 0), InvalidArgument);

  Poly moved = std::move(x);
  EXPECT_EQ(moved.at(2, 2, 1), 8 * kN + 1);
}

TEST_P(RingTest, ZeroCopyAndSelect) {
  const PrimeList primes = range(0, kPrimes);
  {
    Poly dirty = ring_->make(primes, 2);  // its memory is what zero() gets next
    std::memset(dirty.data(), 0xAB, dirty.bytes());
  }
  const Poly zero = ring_->zero(primes, 2, Form::coeff);
  for (std::size_t i = 0; i < kPrimes; ++i) {
    for (std::size_t k = 0; k < kN; ++k) EXPECT_EQ(zero.at(i, k % 2, k), 0U);
  }
  EXPECT_EQ(zero.form(), Form::coeff);

  Poly x = ring_->make(primes, 2, Form::coeff);
  fill(x);
  Poly y = ring_->copy(x);
  EXPECT_TRUE(equal(x, y));
  set(y, 0, 0, 0, (x.at(0, 0, 0) + 1) % ring_->prime(0));
  EXPECT_FALSE(equal(x, y));  // memory of its own

  const PrimeList some = {1, 4, 6}, other = {0, 2};
  const Poly part = ring_->select(x, some);
  EXPECT_EQ(part.form(), Form::coeff);
  EXPECT_TRUE(std::ranges::equal(part.primes(), some));
  for (std::size_t i = 0; i < some.size(); ++i) {
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t k = 0; k < kN; ++k) EXPECT_EQ(part.at(i, b, k), x.at(some[i], b, k));
    }
  }
  EXPECT_THROW(ring_->select(part, other), InternalError);
}

TEST_P(RingTest, MovesBetweenRings) {
  const auto other = make_ring(GetParam(), kN, primes_for(GetParam(), kN, kPrimes));
  Poly x = ring_->make(range(1, 4), 2, Form::coeff);
  fill(x);
  const Poly imported = other->import(x), host = ring_->host_copy(x);
  EXPECT_TRUE(equal(imported, x));
  EXPECT_TRUE(equal(host, x));
  Poly placed = other->zero(range(1, 4), 2, Form::coeff);
  other->place(placed.data(), x);
  EXPECT_TRUE(equal(placed, x));
  set(x, 0, 0, 0, (x.at(0, 0, 0) + 1) % ring_->prime(1));
  EXPECT_FALSE(equal(imported, x));  // memory of their own
  EXPECT_FALSE(equal(host, x));
}

TEST_P(RingTest, UniformPolynomialsDependOnSeedIndexAndPrimeOnly) {
  const std::array<std::uint8_t, 32> seed = {7}, another = {8};
  Poly all = ring_->make(range(0, kPrimes)), some = ring_->make(PrimeList{2, 5});
  ring_->sample_uniform(all, seed, 3);
  ring_->sample_uniform(some, seed, 3);
  EXPECT_TRUE(equal(ring_->select(all, some.primes()), some));
  for (std::size_t i = 0; i < kPrimes; ++i) {
    for (std::size_t k = 0; k < kN; ++k) EXPECT_LT(all.at(i, 0, k), ring_->prime(i));
  }
  const Poly first = ring_->copy(some);
  ring_->sample_uniform(some, seed, 4);
  EXPECT_FALSE(equal(some, first));
  ring_->sample_uniform(some, another, 3);
  EXPECT_FALSE(equal(some, first));
}

// A size that wraps around would be that of a block of no bytes: 2^64 of them here, 2^32 where
// memory has 32 bits.
TEST_P(RingTest, BlocksLargerThanMemoryAreRefused) {
  const std::size_t row = ring_->n() * word_bytes(GetParam());
  const std::size_t wraps = std::numeric_limits<std::size_t>::max() / row + 1;
  for (const std::size_t batch : {wraps, wraps - 1, wraps / 2}) {
    EXPECT_THROW(ring_->make(range(0, 1), batch), OutOfMemory);
    EXPECT_THROW(ring_->make_secret(range(0, 1), Form::coeff, batch), OutOfMemory);
  }
}

TEST_P(RingTest, SecretMemoryIsPooledApart) {
  const PrimeList primes = {0, 1};
  const void* at = nullptr;
  {
    Poly secret = ring_->make_secret(primes);
    fill(secret);
    at = secret.data();
  }
  const Poly open = ring_->make(primes);
  EXPECT_NE(open.data(), at);  // a secret's memory serves secrets only
}

TEST_P(RingTest, Forms) {
  Poly x = ring_->make(range(0, 3), 2, Form::coeff);
  fill(x);
  const Poly before = ring_->copy(x);
  EXPECT_THROW(ring_->to_coeff(x), InternalError);
  ring_->to_ntt(x);
  EXPECT_EQ(x.form(), Form::ntt);
  EXPECT_FALSE(equal(x, before));
  EXPECT_THROW(ring_->to_ntt(x), InternalError);
  ring_->to_coeff(x);
  EXPECT_TRUE(equal(x, before));
}

TEST_P(RingTest, ResiduesOfIntegers) {
  const PrimeList primes = {0, 1, 2, 5};
  std::vector<std::int64_t> values = {0, 1, -1, INT64_MIN, INT64_MAX, INT64_MIN + 1};
  for (const PrimeIndex p : primes) {
    values.push_back(static_cast<std::int64_t>(ring_->prime(p)));
    values.push_back(-static_cast<std::int64_t>(ring_->prime(p)));
  }
  for (int i = 0; i < 100; ++i)
    values.push_back(static_cast<std::int64_t>(rng_()) >> below(rng_, 64));
  for (const std::int64_t v : values) {
    const std::vector<u64> r = residues(*ring_, primes, v);
    ASSERT_EQ(r.size(), primes.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
      const __int128 q = ring_->prime(primes[i]);
      EXPECT_EQ(r[i], static_cast<u64>((v % q + q) % q)) << v;
    }
  }
}

/// |x| as a big integer, for a double x that is an integer.
Natural integer_of(double x) {
  int exponent = 0;
  const double fraction = std::frexp(std::abs(x), &exponent);
  if (exponent <= 64) return Natural(static_cast<u64>(std::abs(x)));
  Natural value(static_cast<u64>(std::ldexp(fraction, 53)));
  for (int e = 53; e < exponent; ++e) value += Natural(value);
  return value;
}

TEST_P(RingTest, ResiduesOfDoubles) {
  const PrimeList primes = {0, 1, 2, 5};
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                0x1p53,
                                -0x1p64,
                                0x1.fffffffffffffp999,
                                -0x1.fffffffffffffp999,
                                static_cast<double>(ring_->prime(2))};
  for (int i = 0; i < 200; ++i) {
    values.push_back(
        std::nearbyint(std::ldexp(static_cast<double>(static_cast<std::int64_t>(rng_())),
                                  static_cast<int>(below(rng_, 990)) - 63)));
  }
  for (const double v : values) {
    const std::vector<u64> r = residues(*ring_, primes, v);
    for (std::size_t i = 0; i < r.size(); ++i) {
      const u64 q = ring_->prime(primes[i]), m = integer_of(v) % q;
      EXPECT_EQ(r[i], v < 0 && m != 0 ? q - m : m) << v;
    }
  }
  // Values are rounded to the nearest integer, and halves to the even one.
  const std::pair<double, std::int64_t> rounded[] = {
      {0.4, 0},   {0.5, 0},   {0.6, 1},
      {1.5, 2},   {2.5, 2},   {-0.5, 0},
      {-0.6, -1}, {-1.5, -2}, {1e9 + 0.25, 1000000000}};
  for (const auto& [value, integer] : rounded) {
    EXPECT_EQ(residues(*ring_, primes, value), residues(*ring_, primes, integer)) << value;
  }
  for (const double bad : {0x1p1000, -0x1p1000, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(residues(*ring_, primes, bad), InvalidArgument) << bad;
  }
}

TEST_P(RingTest, ResiduesOfProducts) {
  const PrimeList primes = {0, 1, 3};
  for (const PrimeList& factors :
       {PrimeList{}, PrimeList{2}, PrimeList{2, 4, 5, 6}, PrimeList{3}}) {
    Natural p = 1;
    for (const PrimeIndex f : factors) p *= ring_->prime(f);
    const std::vector<u64> r = product_residues(*ring_, primes, factors);
    ASSERT_EQ(r.size(), primes.size());
    for (std::size_t i = 0; i < r.size(); ++i) EXPECT_EQ(r[i], p % ring_->prime(primes[i]));
  }
}

// --- residues to doubles -------------------------------------------------------------------------

/// sign * magnitude in every limb of coefficient (b, k).
void put(const Ring& ring, Poly& x, std::size_t b, std::size_t k, const Natural& magnitude,
         bool negative) {
  for (std::size_t i = 0; i < x.limbs(); ++i) {
    const u64 q = ring.prime(x.primes()[i]), m = magnitude % q;
    set(x, i, b, k, negative && m != 0 ? q - m : m);
  }
}

TEST_P(RingTest, ToDoublesIsExactTo52Bits) {
  // From one limb to 70, which is more than 4096 bits, so that big integers of all sizes are used
  // inside.
  const std::vector<u64> primes = primes_below(u64{1} << word_prime_bits(GetParam()), kN, 70);
  const auto ring = make_ring(GetParam(), kN, primes);
  for (const std::size_t limbs : {1, 2, 3, 7, 16, 70}) {
    Natural q = 1;
    for (std::size_t i = 0; i < limbs; ++i) q *= primes[i];
    Natural half = q;
    half.divide(2);  // (Q - 1) / 2 is the largest centred value
    Poly x = ring->make(range(0, limbs), 2, Form::coeff);
    std::vector<std::pair<Natural, bool>> values = {{0, false},    {1, false},   {1, true},
                                                    {half, false}, {half, true}, {half - 1, true}};
    while (values.size() < 2 * kN) {  // of every length, with runs of ones
      Natural v;
      for (std::size_t bits = below(rng_, std::min<std::size_t>(q.bits(), 1000)) + 1; bits > 0;) {
        const std::size_t take = std::min<std::size_t>(bits, 60);
        v *= u64{1} << take;
        v += below(rng_, 4) == 0 ? (u64{1} << take) - 1 : below(rng_, u64{1} << take);
        bits -= take;
      }
      if (v <= half) values.emplace_back(v, v != Natural(0) && below(rng_, 2) == 1);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(*ring, x, i / kN, i % kN, values[i].first, values[i].second);
    }
    const std::vector<double> d = to_doubles(*ring, x, 1.0), scaled = to_doubles(*ring, x, 0x1p40),
                              third = to_doubles(*ring, x, 3.0);
    ASSERT_EQ(d.size(), 2 * kN);
    for (std::size_t i = 0; i < d.size(); ++i) {
      const auto& [magnitude, negative] = values[i];
      if (magnitude.bits() > 1023) {
        EXPECT_EQ(d[i], negative ? -HUGE_VAL : HUGE_VAL);
        continue;
      }
      EXPECT_EQ(std::signbit(d[i]) && d[i] != 0, negative) << i;
      if (magnitude.bits() <= 53) {
        EXPECT_EQ(std::abs(d[i]), static_cast<double>(magnitude.word(0)));
      } else {
        const Natural have = integer_of(d[i]);
        Natural off = have > magnitude ? have - magnitude : magnitude - have;
        EXPECT_LE(off * (u64{1} << 52), magnitude) << limbs << " limbs, coefficient " << i;
      }
      EXPECT_EQ(scaled[i], d[i] * 0x1p-40);
      EXPECT_EQ(third[i], d[i] / 3.0);
    }
  }
}

TEST_P(RingTest, ToDoublesNeedsCoefficients) {
  Poly x = ring_->zero(range(0, 2), 1, Form::ntt);
  EXPECT_THROW(to_doubles(*ring_, x, 1.0), InternalError);
}

// --- rotations -----------------------------------------------------------------------------------

TEST(GaloisElement, PowersOfFive) {
  for (const std::size_t n : {4, 16, 1024, 131072}) {
    const int slots = static_cast<int>(n / 2);
    u64 power = 1;
    for (int k = 0; k < slots; ++k) {
      ASSERT_EQ(galois_element(n, k), power);
      ASSERT_EQ(galois_element(n, k - slots), power);
      power = power * 5 % (2 * n);
    }
    EXPECT_EQ(power, 1U);  // of order N/2
    EXPECT_EQ(galois_element(n, slots), 1U);
    EXPECT_EQ(galois_element(n, -1) * 5 % (2 * n), 1U);
    EXPECT_EQ(galois_element(n, std::numeric_limits<int>::min()), 1U);  // slots divides 2^31
    EXPECT_EQ(galois_element(n, 7 * slots + 1), 5U);
    EXPECT_EQ(conjugation_element(n), 2 * n - 1);
  }
}

}  // namespace
}  // namespace jali::ring::test
