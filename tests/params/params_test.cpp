#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/params/ckks_params.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

CkksLiteral literal(int depth, double scale_bits, int log_n = 0, std::optional<Word> word = {}) {
  CkksLiteral l;
  l.depth = depth;
  l.scale_bits = scale_bits;
  l.log_n = log_n;
  l.word = word;
  return l;
}

/// Everything that every parameter set must satisfy, recomputed from the object alone.
void check(const CkksParams& p) {
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

  ASSERT_EQ(p.level(p.depth()).scale, std::exp2(p.scale_bits()));
  std::set<PrimeIndex> used;
  for (int l = 0; l <= p.depth(); ++l) {
    const Level& level = p.level(l);
    ASSERT_FALSE(level.primes.empty());
    ASSERT_TRUE(std::is_sorted(level.primes.begin(), level.primes.end()));
    ASSERT_LT(level.primes.back(), p.q_count());
    used.insert(level.primes.begin(), level.primes.end());
    ASSERT_EQ(std::set<PrimeIndex>(level.primes.begin(), level.primes.end()).size(),
              level.primes.size());
    double bits = 0;
    for (PrimeIndex i : level.primes) bits += std::log2(static_cast<double>(p.primes()[i]));
    ASSERT_NEAR(level.log_q, bits, 1e-9);
    ASSERT_LE(std::abs(std::log2(level.scale) - p.scale_bits()), p.max_scale_drift() + 1e-9);
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
      const double step = 2 * std::log2(level.scale) + p.level(l - 1).log_q - level.log_q;
      ASSERT_NEAR(std::log2(p.level(l - 1).scale), step, 1e-9);
    }
  }
  ASSERT_EQ(used.size(), p.q_count()) << "a prime that no level uses";
  ASSERT_LE(p.max_scale_drift(), 0.5);
  ASSERT_GE(p.level(0).log_q, p.literal().integer_bits + p.scale_bits() - 0.5);
}

TEST(Params, DefaultIsSound) {
  for (int depth : {0, 1, 2, 5, 7, 9, 14, 20, 30}) {
    SCOPED_TRACE(depth);
    const auto p = CkksParams::create(literal(depth, 40));
    EXPECT_EQ(p->depth(), depth);
    check(*p);
  }
}

TEST(Params, KeyBytes) {
  const auto p = CkksParams::create(literal(7, 40, 14));
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
