#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "../seeded.h"
#include "jali/base/error.h"
#include "jali/params/ckks/presets.h"
#include "jali/params/ckks_params.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

ckks::Literal small(Word word = Word::w64) {
  ckks::Literal l;
  l.name = "insecure_test";
  l.security = 0;
  l.log_n = 10;
  l.depth = 4;
  l.scale_bits = word == Word::w32 ? 50 : 45;
  l.integer_bits = 10;
  l.word = word;
  l.bootstrap.emplace();
  l.bootstrap->stc_bits = l.scale_bits;
  return l;
}

TEST(BootstrapParams, LevelsLieAboveTheComputation) {
  for (Word word : {Word::w64, Word::w52, Word::w32}) {
    for (auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
      ckks::Literal l = small(word);
      l.bootstrap->order = order;
      const auto p = ckks::Params::create(l);
      const auto& b = *p->bootstrap();
      EXPECT_EQ(p->depth(), 4);
      EXPECT_EQ(b.mod_levels(), 8);
      EXPECT_EQ(p->top(), 4 + b.levels());
      EXPECT_EQ(b.levels(), order == BootstrapOrder::raise_first ? 15 : 12);
      std::vector<double> bits;
      if (order == BootstrapOrder::raise_first) bits.assign(3, b.stc_bits);
      bits.insert(bits.end(), 8, b.mod_bits);
      // If q_0 is larger than was asked for, coefficients to slots takes as many bits more.
      const double surplus = std::max(0.0, p->level(0).log_q - l.scale_bits - l.integer_bits);
      bits.insert(bits.end(), 4, b.cts_bits + (word == Word::w32 ? surplus / 4 : 0));
      for (int l = 1; l <= p->top(); ++l) {
        const auto& low = p->level(l - 1);
        const auto& level = p->level(l);
        EXPECT_NEAR(std::log2(p->ratio(l)), level.log_q - low.log_q, 1e-9);
        if (l <= p->depth()) continue;
        if (word != Word::w32) {
          EXPECT_TRUE(std::ranges::includes(level.primes, low.primes));
        }
        EXPECT_NEAR(std::log2(p->ratio(l)), bits[static_cast<std::size_t>(l - 5)], 0.1);
      }
      EXPECT_EQ(p->level(p->top()).primes.size(), p->q_count());
      // The levels of a computation are the same as without bootstrapping.
      EXPECT_EQ(p->scale(p->depth()), std::exp2(l.scale_bits));
      // The modulus of the sparse secret: P' is about q_0, and has primes that q_0 does not have.
      double extra = 0;
      for (PrimeIndex i : p->sparse_p_primes()) {
        EXPECT_FALSE(std::ranges::binary_search(p->level(0).primes, i));
        extra += std::log2(static_cast<double>(p->primes()[i]));
      }
      EXPECT_GT(extra, p->level(0).log_q - 2.1);
      EXPECT_LT(extra, p->level(0).log_q + (word == Word::w32 ? 30 : 8));
    }
  }
}

// Presets with 32-bit words: every level has the bits that were asked for, whatever primes it
// exchanges. PQ and the modulus of the sparse secret stay within their bounds. No word wastes many
// limbs.
TEST(BootstrapParams, PresetsServe32BitWordsToo) {
  for (const char* name : {"n16_fast", "n16_precise", "n16_real", "n15_small", "n17_deep"}) {
    BootstrapRequest request;
    const auto found = std::ranges::find(bootstrap_presets(), name, &BootstrapPreset::name);
    request.precision_bits = found->precision_bits;
    request.levels_after = found->levels_after;
    request.order = found->order;
    request.scale_bits = found->scale_bits;
    request.word = Word::w32;
    const ckks::Literal l = bootstrap_literal(request, found->log_n);
    const auto p = ckks::Params::create(l);
    SCOPED_TRACE(name);
    const auto& b = *p->bootstrap();
    EXPECT_EQ(p->word(), Word::w32);
    EXPECT_EQ(p->security(), 128);
    EXPECT_LE(p->log_qp(), max_log_qp(p->log_n(), 128));
    EXPECT_LE(p->max_scale_drift(), 0.1);
    EXPECT_EQ(ckks::Params::create(p->literal())->hash(), p->hash());
    const double surplus =
        std::max(0.0, p->level(0).log_q - p->scale_bits() - p->literal().integer_bits);
    double sparse = p->level(0).log_q;
    for (PrimeIndex i : p->sparse_p_primes()) {
      EXPECT_FALSE(std::ranges::binary_search(p->level(0).primes, i));
      sparse += std::log2(static_cast<double>(p->primes()[i]));
    }
    EXPECT_GE(sparse, 2 * p->level(0).log_q - 2);
    EXPECT_LE(sparse, max_log_sparse_modulus(p->log_n(), b.weight));
    for (int level = 1; level <= p->top(); ++level) {
      const auto& at = p->level(level);
      EXPECT_TRUE(std::ranges::is_sorted(at.primes));
      double bits = 0;
      for (PrimeIndex i : at.primes) {
        EXPECT_LT(i, p->q_count());
        bits += std::log2(static_cast<double>(p->primes()[i]));
      }
      EXPECT_NEAR(bits, at.log_q, 1e-9);
      EXPECT_NEAR(std::log2(p->ratio(level)), at.log_q - p->level(level - 1).log_q, 1e-9);
      EXPECT_LE(static_cast<double>(at.primes.size()), at.log_q / 25 + 1);
      if (level <= p->depth()) continue;
      const int above = level - p->depth();
      const int stc = b.order == BootstrapOrder::raise_first ? b.stc_levels : 0;
      const double wanted = above <= stc ? b.stc_bits
                            : above <= stc + b.mod_levels()
                                ? b.mod_bits + b.head_level_bits(stc + b.mod_levels() - above)
                                : b.cts_bits + surplus / b.cts_levels;
      EXPECT_NEAR(std::log2(p->ratio(level)), wanted, 0.4) << level;
    }
  }
}

TEST(BootstrapParams, PresetsHaveTheShapesThatTheirDataSay) {
  for (const BootstrapPreset& preset : bootstrap_presets()) {
    for (const auto& [word, shape] : {std::pair{Word::w32, preset.w32}, {Word::w52, preset.w52}}) {
      const auto p = ckks::Params::create(params::preset(preset.name, word));
      SCOPED_TRACE(std::string(preset.name) + " " + std::string(word_name(word)));
      EXPECT_EQ(p->word(), word);
      EXPECT_EQ(p->q_count(), shape.limbs);
      EXPECT_EQ(p->p_count(), shape.special);
      EXPECT_EQ(p->dnum(), shape.digits);
      EXPECT_EQ(p->depth() - p->bootstrap()->input_level(), preset.levels_after);
      EXPECT_GE(p->security(), 128);
    }
  }
}

TEST(BootstrapParams, AreAFunctionOfTheirLiteral) {
  const auto p = ckks::Params::create(small());
  EXPECT_EQ(ckks::Params::create(p->literal())->hash(), p->hash());
  const auto changed = [&](auto change) {
    ckks::Literal l = small();
    change(*l.bootstrap);
    return ckks::Params::create(l)->hash() != p->hash();
  };
  EXPECT_TRUE(changed([](auto& b) { b.order = BootstrapOrder::slots_first; }));
  EXPECT_TRUE(changed([](auto& b) { b.weight = 31; }));
  EXPECT_TRUE(changed([](auto& b) { b.range = 15; }));
  EXPECT_TRUE(changed([](auto& b) { b.degree = 28; }));
  EXPECT_TRUE(changed([](auto& b) { b.doublings = 2; }));
  EXPECT_TRUE(changed([](auto& b) { b.inverse_sine = 3; }));
  EXPECT_TRUE(changed([](auto& b) { b.head_bits = 4; }));
  EXPECT_TRUE(changed([](auto& b) { b.ratio_bits = 7; }));
  EXPECT_TRUE(changed([](auto& b) { b.cts_levels = 3, b.stc_levels = 4; }));
  ckks::Literal plain = small();
  plain.bootstrap.reset();
  EXPECT_NE(ckks::Params::create(plain)->hash(), p->hash());
}

TEST(BootstrapParams, RefuseWhatCannotWork) {
  const auto refused = [](auto change) {
    ckks::Literal l = small();
    change(l);
    EXPECT_THROW(ckks::Params::create(l), InvalidArgument);
  };
  refused([](auto& l) { l.bootstrap->degree = 31; });
  refused([](auto& l) { l.bootstrap->degree = 0; });
  refused([](auto& l) { l.bootstrap->head_bits = 3; });
  refused([](auto& l) { l.bootstrap->head_bits = 18; });
  refused([](auto& l) { l.bootstrap->doublings = 9; });
  refused([](auto& l) { l.bootstrap->inverse_sine = 2; });
  refused([](auto& l) { l.bootstrap->weight = 0; });
  refused([](auto& l) { l.bootstrap->range = 0; });
  refused([](auto& l) { l.bootstrap->ratio_bits = 11; });
  refused([](auto& l) { l.bootstrap->ratio_bits = 1; });
  refused([](auto& l) { l.bootstrap->cts_levels = 0; });
  refused([](auto& l) { l.bootstrap->stc_levels = 9; });
  refused([](auto& l) { l.bootstrap->mod_bits = 130; });
  refused([](auto& l) { l.depth = 0; });
  refused([](auto& l) {  // three levels, all for entry
    l.bootstrap->order = BootstrapOrder::slots_first;
    l.depth = 3;
  });
}

// In secure parameters PQ keeps to the table, and the sparse secret has a modulus and a bound of
// its own. A range that fails too often is refused.
TEST(BootstrapParams, HoldTheSecurityOfEveryKey) {
  ckks::Literal l;
  l.log_n = 15;
  l.depth = 1;
  l.scale_bits = 30;
  l.integer_bits = 10;
  l.bootstrap.emplace();
  l.bootstrap->mod_bits = 48;
  l.bootstrap->cts_bits = 48;
  l.bootstrap->stc_bits = 33;
  const auto p = ckks::Params::create(l);
  EXPECT_EQ(p->security(), 128);
  EXPECT_LE(p->log_qp(), 868);
  double small_bits = p->level(0).log_q;
  for (PrimeIndex i : p->sparse_p_primes()) {
    small_bits += std::log2(static_cast<double>(p->primes()[i]));
  }
  EXPECT_LE(small_bits, max_log_sparse_modulus(15, 32));

  ckks::Literal light = l;
  light.bootstrap->weight = 16;
  EXPECT_THROW(ckks::Params::create(light), InsecureParams);
  ckks::Literal strong = l;
  strong.security = 192;
  EXPECT_THROW(ckks::Params::create(strong), InsecureParams);
  ckks::Literal narrow = l;
  narrow.bootstrap->range = 10;
  EXPECT_THROW(ckks::Params::create(narrow), InvalidArgument);
  ckks::Literal deep = l;
  deep.depth = 10;
  EXPECT_THROW(ckks::Params::create(deep), InsecureParams);
  deep.log_n = 0;
  EXPECT_EQ(ckks::Params::create(deep)->log_n(), 16);
}

// The bound holds for sums that are drawn at random, and it is not far off.
TEST(BootstrapParams, FailureIsBoundedByChernoff) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> half(-0.5, 0.5);
  const int draws = 400000;
  for (const int weight : {1, 4, 32}) {
    std::vector<int> beyond(6, 0);
    for (int i = 0; i < draws; ++i) {
      double sum = 0;
      for (int k = 0; k <= weight; ++k) sum += half(random);
      for (int k = 1; k < 6; ++k) beyond[static_cast<std::size_t>(k)] += std::fabs(sum) >= k;
    }
    for (int k = 1; k < 6; ++k) {
      const double bound = std::exp2(log2_bootstrap_failure(weight, k, draws));
      const double seen = beyond[static_cast<std::size_t>(k)];
      EXPECT_LT(seen, bound + 6 * std::sqrt(bound) + 1) << weight << " " << k << " seed " << seed;
      if (seen > 100) {
        EXPECT_GT(seen, bound / 30) << weight << " " << k << " seed " << seed;
      }
    }
  }
  // Near the end of the range, for z = n/2 - K < 1, the exact tail is 2 z^n / n!.
  const double exact = 1 + 33 * std::log2(0.5) - std::lgamma(34.0) / std::log(2.0);
  EXPECT_GT(log2_bootstrap_failure(32, 16, 1), exact);
  EXPECT_LT(log2_bootstrap_failure(32, 16, 1), exact + 6);
  EXPECT_LT(log2_bootstrap_failure(32, 17, 1), -1e5);
}

}  // namespace
}  // namespace jali::params
