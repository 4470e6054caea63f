// Compares the oracle with answers computed by hand, schoolbook products and big integers.
#include <bit>
#include <cmath>

#include "engines.h"
#include "jali/arith/primes.h"
#include "jali/backend/ref/crt.h"
#include "jali/backend/ref/transform.h"
#include "jali/base/error.h"
#include "properties.h"
#include "support.h"

namespace jali::backend::test {
namespace {

using ref::Row;

/// Sets a row from a list.
void put(Block& x, std::size_t limb, std::initializer_list<u64> row) {
  std::size_t k = 0;
  for (const u64 v : row) x.set(limb, 0, k++, v);
}

Row row_of(const Block& x, std::size_t limb, std::size_t b = 0) {
  Row r(x.n());
  for (std::size_t k = 0; k < x.n(); ++k) r[k] = x.at(limb, b, k);
  return r;
}

/// x y modulo X^N + 1 and q, from its definition.
Row schoolbook(const Row& x, const Row& y, u64 q) {
  const std::size_t n = x.size();
  Row r(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const u64 p = ref::mul(x[i], y[j], q);
      u64& at = r[(i + j) % n];
      at = i + j < n ? ref::add(at, p, q) : ref::sub(at, p, q);
    }
  }
  return r;
}

// --- natural numbers and primes
// --------------------------------------------------------------------

TEST(Natural, AgreesWith128Bits) {
  JALI_SEEDED(rng);
  using u128 = unsigned __int128;
  const auto natural = [](u128 v) {
    const u64 words[] = {static_cast<u64>(v), static_cast<u64>(v >> 64)};
    return Natural::from_words(words);
  };
  for (int i = 0; i < 2000; ++i) {
    // Numbers of every length, some with words of all ones, through which carries run.
    const auto draw = [&] {
      const u128 v = (static_cast<u128>(rng()) << 64 | rng()) >> below(rng, 127);
      return i % 3 == 0 ? v | ~u64{0} : v;
    };
    const u128 a = draw() >> 1, b = draw() >> 1;
    const u64 d = (rng() >> below(rng, 63)) | 1;
    EXPECT_EQ(natural(a) + natural(b), natural(a + b));
    EXPECT_EQ(natural(std::max(a, b)) - natural(std::min(a, b)),
              natural(std::max(a, b) - std::min(a, b)));
    EXPECT_EQ(natural(a) <=> natural(b), a <=> b);
    EXPECT_EQ(natural(a) % d, static_cast<u64>(a % d));
    Natural q = natural(a);
    EXPECT_EQ(q.divide(d), static_cast<u64>(a % d));
    EXPECT_EQ(q, natural(a / d));
    EXPECT_EQ(q * d + natural(a % d), natural(a));
    EXPECT_EQ(natural(static_cast<u64>(a)) * d,
              natural(static_cast<u128>(static_cast<u64>(a)) * d));
  }
}

TEST(Natural, CarriesThroughManyWords) {
  Natural power = 1;  // 2^640
  for (int i = 0; i < 10; ++i) power = power * (u64{1} << 63) * 2;
  EXPECT_EQ(power.bits(), 641U);
  EXPECT_EQ(power.words(), 11U);
  const Natural ones = power - 1;
  EXPECT_EQ(ones.bits(), 640U);
  EXPECT_EQ(ones + 1, power);
  EXPECT_EQ(ones % 3, 0U);  // 2^640 = 4^320 = 1 mod 3
  EXPECT_LT(ones, power);
  EXPECT_EQ(power - power, Natural());
  EXPECT_EQ(Natural().words(), 0U);
  EXPECT_THROW(Natural(1) - Natural(2), InternalError);
}

TEST(Modular, PrimesAndRoots) {
  std::vector<u64> found, expected = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47};
  for (u64 n = 0; n < 50; ++n) {
    if (ref::is_prime(n)) found.push_back(n);
  }
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(ref::is_prime((u64{1} << 61) - 1));
  EXPECT_FALSE(ref::is_prime(561));                  // Carmichael
  EXPECT_FALSE(ref::is_prime(3215031751));           // passes the bases 2, 3, 5 and 7
  EXPECT_FALSE(ref::is_prime(3825123056546413051));  // passes the bases up to 23
  EXPECT_EQ(ref::smallest_root(17, 4), 2U);          // 2^4 = -1 mod 17
  EXPECT_EQ(ref::smallest_root(97, 4), 33U);         // the roots are 33, 47, 50, 64
  for (const u64 q : primes_below(4096, 16, 5)) {
    u64 smallest = 2;
    while (ref::power(smallest, 16, q) != q - 1) ++smallest;
    EXPECT_EQ(ref::smallest_root(q, 16), smallest) << q;
    EXPECT_EQ(arith::primitive_root(q, 32), smallest) << q;
  }
}

// --- answers by hand
// -------------------------------------------------------------------------------

// N = 4; 17, 41 and 73 are 1 mod 8. psi = 2 modulo 17, so index k holds the value at 2, 2^5 = 15,
// 2^3 = 8, 2^7 = 9.
class KnownAnswers : public testing::TestWithParam<Word> {
 protected:
  std::unique_ptr<Engine> engine_ = make_ref_engine({GetParam(), 4, {17, 41, 73}, 1, ""});
  const Config& config_ = engine_->config();

  Block constant(PrimeList primes, std::initializer_list<u64> values) {
    Block x(config_, std::move(primes), 1);
    std::size_t limb = 0;
    for (const u64 v : values) {
      put(x, limb, {v, v, v, v});
      ++limb;
    }
    return x;
  }
};
INSTANTIATE_TEST_SUITE_P(Words, KnownAnswers, testing::ValuesIn(kWords),
                         [](const auto& info) { return std::string(word_name(info.param)); });

TEST_P(KnownAnswers, Transform) {
  EXPECT_EQ(engine_->ring().root(0), 2U);
  Block x(config_, {0}, 1);
  put(x, 0, {0, 1, 0, 0});  // X
  engine_->ring().ntt(x);
  EXPECT_EQ(row_of(x, 0), (Row{2, 15, 8, 9}));
  put(x, 0, {1, 2, 3, 4});  // 49, -23, 30 and -18 modulo 17
  engine_->ring().ntt(x);
  EXPECT_EQ(row_of(x, 0), (Row{15, 11, 13, 16}));
  engine_->ring().intt(x);
  EXPECT_EQ(row_of(x, 0), (Row{1, 2, 3, 4}));
}

TEST_P(KnownAnswers, Automorphism) {
  Block x(config_, {0}, 1), y(config_, {0}, 1);
  put(x, 0, {1, 2, 3, 4});
  engine_->ring().ntt(x);
  const auto turned = [&](u64 g) {
    engine_->ring().automorphism_ntt(y, x, g);
    engine_->ring().intt(y);
    return row_of(y, 0);
  };
  EXPECT_EQ(turned(3), (Row{1, 4, 14, 2}));  // 1 + 2 X^3 + 3 X^6 + 4 X^9 = 1 + 4 X - 3 X^2 + 2 X^3
  EXPECT_EQ(turned(7), (Row{1, 13, 14, 15}));  // conjugation: 1 - 4 X - 3 X^2 - 2 X^3
}

TEST_P(KnownAnswers, ModUpCentres) {
  struct Case {
    u64 in, mod41, mod73;
  };
  for (const Case& c : {Case{8, 8, 8}, Case{9, 33, 65}, Case{16, 40, 72}, Case{0, 0, 0}}) {
    Block ext(config_, {0, 1, 2}, 1);
    const u32 one[] = {1};
    engine_->rlwe().mod_up(ext, constant({0}, {c.in}), one);
    EXPECT_TRUE(same(ext, constant({0, 1, 2}, {c.in, c.mod41, c.mod73}))) << c.in;
  }
  // 347 and 350 = -347 modulo 17 * 41 = 697.
  Block ext(config_, {0, 1, 2}, 1);
  const u32 two[] = {2};
  engine_->rlwe().mod_up(ext, constant({0, 1}, {7, 19}), two);
  EXPECT_TRUE(same(ext, constant({0, 1, 2}, {7, 19, 55})));
  engine_->rlwe().mod_up(ext, constant({0, 1}, {10, 22}), two);
  EXPECT_TRUE(same(ext, constant({0, 1, 2}, {10, 22, 18})));
}

TEST_P(KnownAnswers, ScaleDownRounds) {
  const auto quotient = [&](PrimeList to, PrimeList from, std::initializer_list<u64> in) {
    Block out(config_, std::move(to), 1);
    engine_->rlwe().scale_down(out, constant(std::move(from), in), nullptr);
    return out.at(0);
  };
  EXPECT_EQ(quotient({0}, {0, 1}, {100 % 17, 100 % 41}), 2U);  // 100 / 41 = 2.44
  EXPECT_EQ(quotient({0}, {0, 1}, {103 % 17, 103 % 41}), 3U);  // 2.51
  EXPECT_EQ(quotient({0}, {0, 1}, {16, 40}), 0U);  // -1 / 41
  EXPECT_EQ(quotient({1}, {0, 1}, {100 % 17, 100 % 41}), 6U);  // 100 / 17 = 5.88
  EXPECT_EQ(quotient({1}, {0}, {9}), 22U);  // 9 * 41 / 17 = 21.7
  // 100 * 73 / 17 = 429.4 modulo 41 and 73
  EXPECT_EQ(quotient({1, 2}, {0, 1}, {100 % 17, 100 % 41}), 429U % 41);
}

TEST_P(KnownAnswers, ScaleDownAddsThePrime) {
  // 100 * 73 / 17 = 429.4, modulo 41 and 73, and an addend.
  Block out(config_, {1, 2}, 1);
  const Block x = constant({0, 1}, {100 % 17, 100 % 41});
  engine_->rlwe().scale_down(out, x, nullptr);
  EXPECT_TRUE(same(out, constant({1, 2}, {429 % 41, 429 % 73})));
  const Block addend = constant({1, 2}, {40, 10});
  const ConstView view = addend;
  engine_->rlwe().scale_down(out, x, &view);
  EXPECT_TRUE(same(out, constant({1, 2}, {428 % 41, 439 % 73})));
}

TEST_P(KnownAnswers, KeyProduct) {
  // acc_c = 2 key[1][c] + 3 key[0][c] on constants; the key holds 10 * digit + part + prime.
  Block key(config_, {0, 1, 2}, 1, 4);
  for (std::size_t i = 0; i < key.size(); ++i)
    key.set(i, i / 4 / 6 * 10 + i / 4 / 3 % 2 + i / 4 % 3);
  Block ext(config_, {0, 2}, 1, 2);
  for (std::size_t i = 0; i < ext.size(); ++i) ext.set(i, i < ext.size() / 2 ? 2 : 3);
  Block acc0(config_, {0, 2}, 1), acc1(config_, {0, 2}, 1);
  const u32 ids[] = {1, 0};
  engine_->rlwe().key_product(acc0, acc1, ext, {key.data(), 2, key.primes()}, ids, 1, false);
  EXPECT_TRUE(same(acc0, constant({0, 2}, {20 - 17, 2 * 12 + 3 * 2})));
  EXPECT_TRUE(same(acc1, constant({0, 2}, {2 * 11 + 3 * 1 - 17, 2 * 13 + 3 * 3})));
  engine_->rlwe().key_product(acc0, acc1, ext, {key.data(), 2, key.primes()}, ids, 5, true);
  EXPECT_TRUE(same(acc0, constant({0, 2}, {6, 60})));
}

TEST_P(KnownAnswers, Integers) {
  Block x(config_, {0, 1, 2}, 1);
  engine_->ring().from_int64(x, std::vector<std::int64_t>{-1, 0, 1000, INT64_MIN});
  EXPECT_EQ(row_of(x, 0), (Row{16, 0, 14, 8}));  // 2^63 = 2^7 (2^8)^7 = 128 = 9 mod 17
  EXPECT_EQ(row_of(x, 1), (Row{40, 0, 16, 33}));
  engine_->ring().from_int64(x.poison(), std::vector<std::int64_t>{-1, 1000});  // -1 + 1000 X^2
  EXPECT_EQ(row_of(x, 0), (Row{16, 0, 14, 0}));
  engine_->ring().from_int64(x.poison(), std::vector<std::int64_t>{-1});
  EXPECT_EQ(row_of(x, 1), (Row{40, 0, 0, 0}));
  engine_->ring().from_double(x, std::vector<double>{-1, 0x1p100, -0x1p100, 0x1p999});
  EXPECT_EQ(row_of(x, 0), (Row{16, 16, 1, 9}));  // 2^100 = 2^4, 2^999 = 2^7
  const std::vector<u64> wide = {1, 0, ~u64{0}, 5, 0, 1, ~u64{0}, 6};  // low words, then high
  for (const CrtMethod method : {CrtMethod::mod, CrtMethod::mul}) {
    engine_->ring().crt(x.poison(), wide, 2, method);
    EXPECT_EQ(row_of(x, 0), (Row{1, 1, 0, 11}));  // 2^64 = 1 and 2^128 - 1 = 0 mod 17
  }
  // 696 = -1 modulo 17 and 41; 50880 = 17 * 41 * 73 - 1.
  for (const IcrtMethod method :
       {IcrtMethod::automatic, IcrtMethod::product_sum, IcrtMethod::garner}) {
    std::vector<u64> back(4);
    engine_->ring().icrt(back, 1, constant({0, 1}, {16, 40}), method);
    EXPECT_EQ(back, std::vector<u64>(4, 696));
    engine_->ring().icrt(back, 1, constant({0, 1, 2}, {16, 40, 72}), method);
    EXPECT_EQ(back, std::vector<u64>(4, 50880));
    engine_->ring().icrt(back, 1, constant({0, 1, 2}, {0, 0, 1}), method);
    EXPECT_EQ(back, std::vector<u64>(4, 697 * 42));  // 697 = 40 and 40 * 42 = 1680 = 1 mod 73
  }
}

// --- transforms
// --------------------------------------------------------------------------------------

class Transforms : public testing::TestWithParam<std::tuple<Word, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Transforms,
                         testing::Combine(testing::ValuesIn(kWords),
                                          testing::Values<std::size_t>(4, 8, 32, 256, 1024)));

TEST_P(Transforms, RecursionIsTheDefinition) {
  JALI_SEEDED(rng);
  const auto [word, n] = GetParam();
  for (const u64 q : primes_for(word, n, kSanitized ? 1 : 3)) {
    const u64 psi = ref::smallest_root(q, n);
    Row x(n);
    for (u64& v : x) v = below(rng, q);
    const Row values = ref::ntt_by_definition(x, psi, q);
    EXPECT_EQ(ref::ntt_by_recursion(x, psi, q), values) << q;
    EXPECT_EQ(ref::intt_by_definition(values, psi, q), x) << q;
    EXPECT_EQ(ref::intt_by_recursion(values, psi, q), x) << q;
    // Each value is that of the polynomial at its root, by Horner's rule.
    for (const std::size_t k : {std::size_t{0}, n / 2 - 1, n - 1}) {
      const u64 at = ref::power(psi, 2 * ref::bit_reverse(k, n) + 1, q);
      u64 value = 0;
      for (std::size_t j = n; j-- > 0;) value = ref::add(ref::mul(value, at, q), x[j], q);
      EXPECT_EQ(values[k], value) << q;
    }
    for (const u64 g : {u64{3}, u64{5}, u64{2 * n - 1}}) {
      EXPECT_EQ(ref::ntt_by_recursion(ref::automorphism(x, g, q), psi, q),
                ref::automorphism_of_values(values, g));
    }
  }
}

TEST(Transform, ProductsAreSchoolbookProducts) {
  JALI_SEEDED(rng);
  for (const Word word : kWords) {
    for (const std::size_t n : {4, 64, 256}) {
      const auto engine = make_ref_engine({word, n, primes_for(word, n, 3), 1, ""});
      Block x(engine->config(), {0, 1, 2}, 2), y(engine->config(), {0, 1, 2}, 2);
      x.random(rng);
      y.random(rng);
      Block xn = x, yn = y;
      engine->ring().ntt(xn);
      engine->ring().ntt(yn);
      engine->ring().mul(xn, xn, yn);
      engine->ring().intt(xn);
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t b = 0; b < 2; ++b) {
          EXPECT_EQ(row_of(xn, i, b), schoolbook(row_of(x, i, b), row_of(y, i, b), x.prime(i)));
        }
      }
    }
  }
}

TEST(Basis, CentredLiftIsExactAndNearHalfFollowsTheDefinition) {
  JALI_SEEDED(rng);
  for (const Word word : kWords) {
    const std::vector<u64> primes = primes_for(word, 1024, 8);
    const ref::Basis basis(primes);
    const Natural& d = basis.product();
    Natural half = d;
    half.divide(2);
    const auto residues = [&](const Natural& x) {
      std::vector<u64> r;
      for (const u64 q : primes) r.push_back(x % q);
      return r;
    };
    for (int i = 0; i < 200; ++i) {
      Natural x;
      for (std::size_t w = 0; w <= d.words(); ++w) x = x * (u64{1} << 63) * 2 + below(rng, ~u64{0});
      std::vector<u64> r = residues(x);
      const ref::Lift lift = basis.centred(r);
      EXPECT_LT(lift.value, d);
      EXPECT_EQ(residues(lift.value), r);
      EXPECT_EQ(lift.negative, lift.value > half);
    }
    for (u64 away = 0; away < 3; ++away) {  // must not throw; the double sum decides the side
      EXPECT_EQ(basis.centred(residues(half - away)).value, half - away);
      EXPECT_EQ(basis.centred(residues(half + away)).value, half + away);
    }
    // If the value differs from D/2 by more than the rounding error, the side is exact.
    Natural hair = d;
    hair.divide(u64{1} << 44);
    EXPECT_FALSE(basis.centred(residues(half - hair)).negative);
    EXPECT_TRUE(basis.centred(residues(half + hair)).negative);
  }
  const ref::Basis none({});
  EXPECT_EQ(none.product(), Natural(1));
  EXPECT_FALSE(none.centred({}).negative);
}

// --- properties of whole operations
// ------------------------------------------------------------------

class Properties : public testing::TestWithParam<std::tuple<Word, std::size_t>> {
 protected:
  std::unique_ptr<Engine> engine_ = [] {
    const auto [word, n] = GetParam();
    return make_ref_engine({word, n, primes_for(word, n, 9), 1, ""});
  }();
};
INSTANTIATE_TEST_SUITE_P(Sizes, Properties,
                         testing::Combine(testing::ValuesIn(kWords),
                                          testing::Values<std::size_t>(4, 64, 128)));

TEST_P(Properties, All) {
  JALI_SEEDED(rng);
  check_transforms(*engine_, rng);
  check_automorphisms(*engine_, rng);
  check_mod_up(*engine_, rng);
  check_scale_down(*engine_, rng);
  check_key_switch(*engine_, rng);
  check_weighted_sums(*engine_, rng);
  check_integers(*engine_, rng);
}

}  // namespace
}  // namespace jali::backend::test
