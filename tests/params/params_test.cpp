#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "../hex.h"
#include "../seeded.h"
#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/params/ckks/presets.h"
#include "jali/params/ckks_params.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

ckks::Literal literal(int depth, double scale_bits, int log_n = 0, std::optional<Word> word = {}) {
  ckks::Literal l;
  l.depth = depth;
  l.scale_bits = scale_bits;
  l.log_n = log_n;
  l.word = word;
  return l;
}

/// Checks what every set of parameters must satisfy. Everything is recomputed from the object
/// alone.
void check(const ckks::Params& p) {
  const std::uint64_t m = 2 * p.n();
  const std::set<std::uint64_t> distinct(p.primes().begin(), p.primes().end());
  ASSERT_EQ(distinct.size(), p.primes().size());
  for (std::uint64_t q : p.primes()) {
    ASSERT_TRUE(arith::is_prime(q));
    ASSERT_EQ(q % m, 1u);
    ASSERT_LT(q, std::uint64_t{1} << word_prime_bits(p.word()));
  }
  ASSERT_EQ(p.primes().size(), p.q_count() + p.p_count());
  ASSERT_EQ(p.all_primes().size(), p.primes().size());
  for (std::size_t i = 0; i < p.primes().size(); ++i) ASSERT_EQ(p.all_primes()[i], i);
  ASSERT_GE(p.p_count(), 1u);
  double log_q = 0, log_p = 0;
  for (std::size_t i = 0; i < p.primes().size(); ++i) {
    (i < p.q_count() ? log_q : log_p) += std::log2(static_cast<double>(p.primes()[i]));
  }
  ASSERT_NEAR(p.log_q(), log_q, 1e-9);
  ASSERT_NEAR(p.log_p(), log_p, 1e-9);
  if (p.literal().security != 0) {
    ASSERT_GE(p.security(), p.literal().security);
    ASSERT_LE(p.log_qp(), max_log_qp(p.log_n(), p.literal().security) + 1e-9);
    ASSERT_TRUE(is_secure(p.primes(), p.log_n(), p.literal().security));
  }

  // Digits are consecutive runs of the q primes; none is larger than P.
  ASSERT_EQ(p.digit_begin(0), 0u);
  ASSERT_EQ(p.digit_begin(p.dnum()), p.q_count());
  for (std::size_t d = 0; d < p.dnum(); ++d) {
    ASSERT_LT(p.digit_begin(d), p.digit_begin(d + 1));
    double bits = 0;
    for (std::size_t i = p.digit_begin(d); i < p.digit_begin(d + 1); ++i) {
      bits += std::log2(static_cast<double>(p.primes()[i]));
    }
    ASSERT_LE(bits, p.log_p());
  }

  ASSERT_DOUBLE_EQ(p.scale(p.depth()), std::exp2(p.scale_bits()));
  std::set<PrimeIndex> used;
  for (int l = 0; l <= p.depth(); ++l) {
    const rlwe::Level& level = p.level(l);
    ASSERT_FALSE(level.primes.empty());
    ASSERT_TRUE(std::is_sorted(level.primes.begin(), level.primes.end()));
    ASSERT_LT(level.primes.back(), p.q_count());
    used.insert(level.primes.begin(), level.primes.end());
    ASSERT_EQ(std::set<PrimeIndex>(level.primes.begin(), level.primes.end()).size(),
              level.primes.size());
    double bits = 0;
    for (PrimeIndex i : level.primes) bits += std::log2(static_cast<double>(p.primes()[i]));
    ASSERT_NEAR(level.log_q, bits, 1e-9);
    ASSERT_LE(std::abs(std::log2(p.scale(l)) - p.scale_bits()), p.max_scale_drift() + 1e-9);
    // The digits of the level partition its primes.
    ASSERT_EQ(level.digit_ids.size(), level.digit_limbs.size());
    ASSERT_TRUE(std::is_sorted(level.digit_ids.begin(), level.digit_ids.end()));
    std::size_t k = 0;
    for (std::size_t j = 0; j < level.digit_ids.size(); ++j) {
      ASSERT_GT(level.digit_limbs[j], 0u);
      for (std::uint32_t c = 0; c < level.digit_limbs[j]; ++c, ++k) {
        ASSERT_GE(level.primes[k], p.digit_begin(level.digit_ids[j]));
        ASSERT_LT(level.primes[k], p.digit_begin(level.digit_ids[j] + 1));
      }
    }
    ASSERT_EQ(k, level.primes.size());
    if (l > 0) {
      // scale(l-1) = scale(l)^2 Q_{l-1} / Q_l
      const double step = 2 * std::log2(p.scale(l)) + p.level(l - 1).log_q - level.log_q;
      ASSERT_NEAR(std::log2(p.scale(l - 1)), step, 1e-9);
    }
  }
  ASSERT_EQ(used.size(), p.q_count()) << "a prime that no level uses";
  ASSERT_LE(p.max_scale_drift(), 0.5);
  ASSERT_GE(p.level(0).log_q, p.literal().integer_bits + p.scale_bits() - 0.5);
}

TEST(Params, DefaultIsSound) {
  for (int depth : {0, 1, 2, 5, 7, 9, 14, 20, 30}) {
    SCOPED_TRACE(depth);
    const auto p = ckks::Params::create(literal(depth, 40));
    EXPECT_EQ(p->depth(), depth);
    check(*p);
  }
}

TEST(Params, EveryWordScaleAndRing) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 rng(seed);
  int made = 0;
  for (Word word : {Word::w32, Word::w52, Word::w64}) {
    for (int log_n = 10; log_n <= 17; ++log_n) {
      for (int i = 0; i < 4; ++i) {
        const double scale_bits = 20 + static_cast<double>(rng() % 401) / 10;
        const double integer_bits = static_cast<double>(rng() % 16);
        // This leaves room for P, which takes a little more than one prime of the scale's size.
        const double bits = max_log_qp(log_n, 128) - integer_bits - 2 * scale_bits - 40;
        const int most = static_cast<int>(bits / (scale_bits * 1.2));
        if (bits < 0) continue;
        ckks::Literal l = literal(static_cast<int>(rng() % static_cast<unsigned>(most + 1)),
                                  scale_bits, log_n, word);
        l.integer_bits = integer_bits;
        const std::string trace =
            "seed " + std::to_string(seed) + ", " + std::string(word_name(word)) + " log_n " +
            std::to_string(log_n) + " depth " + std::to_string(l.depth) + " scale " +
            std::to_string(scale_bits) + " integer_bits " + std::to_string(integer_bits);
        SCOPED_TRACE(trace);
        // Primes = 1 mod 2N near the scale are N ln(2^scale) apart. If those that are needed spread
        // over more than some per cent, it is right to refuse.
        const double spread = (l.depth + 2) * std::exp2(log_n - scale_bits) * scale_bits;
        const bool scarce = spread > 0.02 || scale_bits < log_n + 8 ||
                            (word == Word::w32 && (log_n >= 16 || scale_bits < log_n + 10));
        try {
          const auto p = ckks::Params::create(l);
          ++made;
          check(*p);
          ASSERT_EQ(p->log_n(), log_n);
          ASSERT_EQ(p->word(), word);
          ASSERT_EQ(p->depth(), l.depth);
          // The literal of the result is canonical, so it makes the same parameters.
          ASSERT_EQ(ckks::Params::create(p->literal())->hash(), p->hash());
        } catch (const InvalidArgument& e) {
          ASSERT_TRUE(scarce) << e.what();
        } catch (const InsecureParams& e) {
          // Only terminals may make them too large, because not every level uses them.
          ASSERT_TRUE(scarce || scale_bits > word_prime_bits(word) - 1) << e.what();
        }
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GE(made, 40);
}

TEST(Params, ScalesStayClose) {
  // The drift that is reached if the word has enough primes.
  for (Word word : {Word::w52, Word::w64}) {
    for (int log_n : {13, 14, 15, 16, 17}) {
      for (double scale : {30.0, 40.0, 45.0, 55.0}) {
        if (max_log_qp(log_n, 128) < 4 * scale) continue;
        const auto p = ckks::Params::create(literal(1, scale, log_n, word));
        EXPECT_LE(p->max_scale_drift(), 0.1) << word_name(word) << log_n << " " << scale;
      }
    }
  }
  for (int depth : {5, 7}) {
    EXPECT_LE(ckks::Params::create(literal(depth, 40, 14, Word::w32))->max_scale_drift(), 0.1);
  }
  for (int depth : {10, 20, 30}) {
    EXPECT_LE(ckks::Params::create(literal(depth, 40, 16, Word::w32))->max_scale_drift(), 0.1);
  }
  // Every rescale corrects the error of the one before. With one prime a level near 40 bits, scales
  // therefore differ from 2^40 by no more than the distance between primes.
  EXPECT_LE(ckks::Params::create(literal(30, 40, 16))->max_scale_drift(), 1e-3);
}

TEST(Params, RationalTablesAreCompact) {
  // 40-bit levels of 30-bit words: limbs stay within a quarter of log Q / 30.
  const auto p = ckks::Params::create(literal(30, 40, 16, Word::w32));
  for (int l = 5; l <= 30; ++l) {
    EXPECT_LE(static_cast<double>(p->level(l).primes.size()), 1.25 * p->level(l).log_q / 30 + 1);
  }
  EXPECT_LE(p->log_q(), 1.08 * p->level(30).log_q);
}

TEST(Params, DefaultsChooseTheSmallestRingAndTheFastWord) {
  for (int depth = 0; depth <= 20; ++depth) {
    const auto p = ckks::Params::create(literal(depth, 40));
    EXPECT_EQ(p->word(), Word::w52);
    if (p->log_n() > 10) {
      EXPECT_THROW(ckks::Params::create(literal(depth, 40, p->log_n() - 1)), InsecureParams)
          << depth;
    }
    for (int l = 1; l <= depth; ++l) {
      EXPECT_EQ(p->level(l).primes.size(), p->level(l - 1).primes.size() + 1);
    }
  }
  EXPECT_EQ(ckks::Params::create(literal(3, 55))->word(), Word::w64);
  EXPECT_EQ(ckks::Params::create(literal(7, 40))->log_n(), 14);
  EXPECT_EQ(ckks::Params::create(literal(14, 40))->log_n(), 15);
}

TEST(Params, DigitsAreTheFewestThatFit) {
  const auto p = ckks::Params::create(literal(7, 40, 14));
  for (int dnum = 1; dnum < static_cast<int>(p->dnum()); ++dnum) {
    ckks::Literal l = literal(7, 40, 14);
    l.dnum = dnum;
    EXPECT_THROW(ckks::Params::create(l), InsecureParams) << dnum;
  }
  for (int dnum = static_cast<int>(p->dnum()); dnum <= 8; ++dnum) {
    ckks::Literal l = literal(7, 40, 14);
    l.dnum = dnum;
    const auto q = ckks::Params::create(l);
    EXPECT_EQ(q->dnum(), static_cast<std::size_t>(dnum));
    check(*q);
  }
}

template <class E>
std::string message_of(const ckks::Literal& l) {
  try {
    ckks::Params::create(l);
  } catch (const E& e) {
    return e.what();
  } catch (const Error& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

#define EXPECT_SAYS(E, literal, ...)                               \
  do {                                                             \
    const std::string message = message_of<E>(literal);            \
    for (const char* part : {__VA_ARGS__}) {                       \
      EXPECT_NE(message.find(part), std::string::npos) << message; \
    }                                                              \
  } while (false)

TEST(Params, ErrorsSayWhatToChange) {
  EXPECT_SAYS(InsecureParams, literal(9, 40, 14), "depth 9", "scale_bits 40", "430",
              "leave log_n out (gives 15)", "use scale_bits <= 38", "use depth <= 8");
  EXPECT_NO_THROW(ckks::Params::create(literal(9, 38, 14)));
  EXPECT_NO_THROW(ckks::Params::create(literal(8, 40, 14)));
  EXPECT_SAYS(InsecureParams, literal(100, 40), "3523", "use depth <= ");
  EXPECT_SAYS(InvalidArgument, literal(-1, 40), "depth must be");
  EXPECT_SAYS(InvalidArgument, literal(201, 40), "depth must be");
  EXPECT_SAYS(InvalidArgument, literal(1, 14), "scale_bits must be");
  EXPECT_SAYS(InvalidArgument, literal(1, std::nan("")), "scale_bits must be");
  EXPECT_SAYS(InvalidArgument, literal(1, std::numeric_limits<double>::infinity()), "scale_bits");
  EXPECT_SAYS(InvalidArgument, literal(1, 40, 9), "log_n must be");
  EXPECT_SAYS(InvalidArgument, literal(1, 40, 18), "log_n must be");
  EXPECT_SAYS(InvalidArgument, literal(1, 40, -1), "log_n must be");
  EXPECT_SAYS(InvalidArgument, literal(1, 40, 14, static_cast<Word>(7)), "word must be");
  EXPECT_SAYS(InvalidArgument, literal(20, 37, 17, Word::w32), "word=\"w52\"");
  ckks::Literal l = literal(7, 40, 14);
  l.integer_bits = -1;
  EXPECT_SAYS(InvalidArgument, l, "integer_bits must be");
  l = literal(7, 40, 14);
  l.dnum = 1;
  EXPECT_SAYS(InsecureParams, l, "dnum 1", "leave dnum out (gives 4)");
  l.dnum = 99;
  EXPECT_SAYS(InvalidArgument, l, "dnum <= 8");
  l.dnum = -1;
  EXPECT_SAYS(InvalidArgument, l, "dnum");
  l = literal(1, 40);
  l.security = 100;
  EXPECT_SAYS(InvalidArgument, l, "security must be");
}

TEST(Params, OnlyAnInsecureNameGoesBelowTheTable) {
  ckks::Literal l = literal(9, 40, 14);
  l.security = 0;
  EXPECT_SAYS(InsecureParams, l, "insecure_");
  l.name = "not_insecure_";
  EXPECT_SAYS(InsecureParams, l, "insecure_");
  l.name = "insecure_test";
  l.log_n = 0;
  EXPECT_SAYS(InvalidArgument, l, "give log_n");
  l.log_n = 10;
  const auto p = ckks::Params::create(l);
  EXPECT_EQ(p->security(), 0);
  check(*p);
  // The name alone changes nothing.
  ckks::Literal named = literal(9, 40, 14);
  named.name = "insecure_test";
  EXPECT_THROW(ckks::Params::create(named), InsecureParams);
}

TEST(Params, HigherSecurity) {
  int last = 0;
  for (int security : {128, 192, 256}) {
    ckks::Literal l = literal(5, 35);
    l.security = security;
    const auto p = ckks::Params::create(l);
    EXPECT_GE(p->security(), security);
    EXPECT_GE(p->log_n(), last);
    last = p->log_n();
    check(*p);
  }
  EXPECT_EQ(last, 15);
}

TEST(Security, TableIsThatOfThePaper) {
  const int rows[8][4] = {{10, 26, 0, 0},        {11, 53, 36, 27},      {12, 106, 73, 56},
                          {13, 214, 147, 114},   {14, 430, 297, 230},   {15, 868, 597, 462},
                          {16, 1747, 1199, 929}, {17, 3523, 2411, 1866}};
  for (const auto& row : rows) {
    EXPECT_EQ(max_log_qp(row[0], 128), row[1]);
    EXPECT_EQ(max_log_qp(row[0], 192), row[2]);
    EXPECT_EQ(max_log_qp(row[0], 256), row[3]);
  }
  EXPECT_EQ(max_log_qp(9, 128), 0);
  EXPECT_EQ(max_log_qp(18, 128), 0);
  EXPECT_THROW(max_log_qp(14, 100), InvalidArgument);
}

TEST(Security, ComparisonIsExact) {
  const std::uint64_t big = std::uint64_t{1} << 60;
  // 2^180 (2^34 - 1) < 2^214 < 2^180 (2^34 + 1): 8e-11 of a bit apart.
  const std::uint64_t near = std::uint64_t{1} << 34;
  EXPECT_TRUE(is_secure(std::vector{big, big, big, near - 1}, 13, 128));
  EXPECT_FALSE(is_secure(std::vector{big, big, big, near + 1}, 13, 128));
  EXPECT_EQ(product_bits(std::vector<std::uint64_t>{}), 1);
  std::vector<std::uint64_t> many(61, big - 1);  // (2^60 - 1)^61: just below 2^3660
  EXPECT_EQ(product_bits(many), 3660);
  EXPECT_EQ(granted_security(std::vector{big, big, big, near - 1}, 13), 128);
  EXPECT_EQ(granted_security(std::vector{big, big, std::uint64_t{1} << 26}, 13), 192);
  EXPECT_EQ(granted_security(std::vector{big, big}, 13), 192);
  EXPECT_EQ(granted_security(std::vector{big}, 13), 256);
  EXPECT_EQ(granted_security(std::vector{big}, 10), 0);
}

TEST(Presets, AreSoundAndAsNamed) {
  std::set<std::string_view> names;
  for (const Preset& preset_data : presets()) {
    SCOPED_TRACE(preset_data.name);
    EXPECT_TRUE(names.insert(preset_data.name).second);
    const auto p = ckks::Params::create(preset(preset_data.name));
    check(*p);
    EXPECT_GE(p->security(), 128);
    EXPECT_EQ(p->log_n(), preset_data.log_n);
    EXPECT_EQ(p->depth(), preset_data.depth);
  }
  const auto grouped = ckks::Params::create(preset("n14_q285_dnum3"));
  EXPECT_NEAR(grouped->log_q(), 285, 0.5);
  EXPECT_EQ(grouped->q_count(), 6u);
  EXPECT_EQ(grouped->p_count(), 2u);
  EXPECT_EQ(grouped->dnum(), 3u);
  const auto single = ckks::Params::create(preset("n14_q375_dnum8"));
  EXPECT_NEAR(single->log_q(), 375, 0.5);
  EXPECT_EQ(single->q_count(), 8u);
  EXPECT_EQ(single->p_count(), 1u);
  EXPECT_THROW(preset("nothing"), InvalidArgument);
}

TEST(Real, AgreesWithTheMathematicsLibrary) {
  std::mt19937_64 rng(1);
  std::uniform_real_distribution<double> exponent(-200, 200);
  for (int i = 0; i < 100000; ++i) {
    const double x = exponent(rng);
    EXPECT_NEAR(portable_exp2(x) / std::exp2(x), 1, 0x1p-50) << x;
    const double y = std::exp2(x);
    EXPECT_NEAR(portable_log2(y), std::log2(y), 0x1p-50 * std::max(1.0, std::abs(x))) << x;
  }
  for (int k = -100; k <= 100; ++k) {
    EXPECT_EQ(portable_exp2(k), std::ldexp(1.0, k));
    EXPECT_EQ(portable_log2(std::ldexp(1.0, k)), k);
  }
}

using test::hex;

// Literals travel instead of primes, so the primes that they make are part of the format. If these
// hashes change, every stored object breaks.
TEST(Params, KnownAnswers) {
  struct Known {
    int depth;
    double scale_bits;
    int log_n;
    std::optional<Word> word;
    int dnum;
    const char* hash;
  };
  const Known known[] = {
      {0, 40, 0, {}, 0, "9ae2e55017562f183251d31bfdbc34eca807b6937a7eec6f53bc933cfee2d4ab"},
      {1, 30, 12, {}, 0, "9867dcfaa016ff81914b11765c56c292580b6b3631560705f90ca2aa84ab5c7e"},
      {5, 28, 13, {}, 0, "8d330d35ca2b7ebb53eb9ef5627e170b129551752dca7ec08820271314e7abfe"},
      {7, 40, 14, {}, 0, "6468038a693f2776d3190878b8030f15f067abca7a6c3fe5eaad8ed5429b34a9"},
      {7, 40, 14, Word::w64, 0, "b676811374ac395095cd31b71e5771cd3a1614ded0e89a72fae399ea65379482"},
      {7, 40, 14, Word::w32, 0, "88f060682c7c3dc6f11d728b1e102f7d280fe7b0b47a938777d9d26dd9dc7b41"},
      {5, 28, 13, Word::w32, 0, "e489336176e444fdde18fc0e481b34108abf72dae4263fc5d265070cacd4b6b9"},
      {5, 47, 14, Word::w52, 3, "995c51025d47cd7b2b30108eabab65e57a3c8292f6ca1f08e52d74d6d0f4e522"},
      {14, 40, 15, {}, 0, "b8b35739286758f5cd680a7c59c450a40280f0f1198846074803a79b2d4b990b"},
      {14, 45.5, 15, Word::w32, 0,
       "e1055da0c1c68f6797a868abd62c6ad940414bb496847c43775cec767420dc9a"},
      {30, 40, 16, Word::w32, 4,
       "47c78252760108b88498600d67aacd4e1bfe10d92ffe430faa821b6cf3827151"},
      {30, 40, 16, {}, 0, "e27cbc6d9cab81b72e42cbc001abc20e13df225fb1217e66f7ddfda0ed2c9659"},
      {10, 55, 15, {}, 0, "ec78167d20ccd17f595d7911f599cf6885723e5c6325a8d479c1bd8d818d74aa"},
      {4, 57.25, 14, Word::w52, 0,
       "31d7c06da7be3b6f57c5dd14995255db848573df76f3597ed8e1ceac4ff926d1"},
      {3, 36, 17, Word::w64, 1, "b065a3ef0cf3c9e861fd3a96f7806f2aaa355b2c15c84a4846fb55c0acc831a4"},
  };
  for (const Known& k : known) {
    ckks::Literal l = literal(k.depth, k.scale_bits, k.log_n, k.word);
    l.dnum = k.dnum;
    EXPECT_EQ(hex(ckks::Params::create(l)->hash()), k.hash)
        << k.depth << " " << k.scale_bits << " " << k.log_n;
  }
}

TEST(Params, HashTellsParametersApart) {
  const auto a = ckks::Params::create(literal(3, 40, 14));
  ckks::Literal named = literal(3, 40, 14);
  named.name = "another name";
  EXPECT_EQ(a->hash(), ckks::Params::create(named)->hash());
  std::set<std::string> hashes{hex(a->hash())};
  const auto differs = [&](const ckks::Literal& l) {
    return hashes.insert(hex(ckks::Params::create(l)->hash())).second;
  };
  EXPECT_TRUE(differs(literal(4, 40, 14)));
  EXPECT_TRUE(differs(literal(3, 40.5, 14)));
  EXPECT_TRUE(differs(literal(3, 40, 15)));
  EXPECT_TRUE(differs(literal(3, 40, 14, Word::w64)));
  EXPECT_TRUE(differs(literal(3, 40, 14, Word::w32)));
  ckks::Literal l = literal(3, 40, 14);
  l.integer_bits = 8;
  EXPECT_TRUE(differs(l));
  l = literal(3, 40, 14);
  l.dnum = 3;
  EXPECT_TRUE(differs(l));
}

TEST(Params, KeyBytes) {
  const auto p = ckks::Params::create(literal(7, 40, 14));
  const std::size_t one = p->dnum() * p->primes().size() * p->n() * word_bytes(p->word()) + 32;
  EXPECT_EQ(p->switch_key_bytes(), one);
  const int slots = static_cast<int>(p->slots());
  const std::vector<int> rotations{1, 1, 0, slots, -1, slots - 1, 1 + slots, 5};
  EXPECT_EQ(p->key_bytes(rotations, true), 5 * one);          // 1, -1, 5, relin, conjugation
  EXPECT_EQ(p->key_bytes(rotations, false, false), 3 * one);
  EXPECT_EQ(p->expanded_key_bytes({}, true), 4 * (one - 32));
}

}  // namespace
}  // namespace jali::params
