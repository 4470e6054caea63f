// Parameters that have fewer levels of a computation below those of bootstrapping: parts of the
// whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "jali/base/error.h"
#include "jali/params/ckks/bootstrap_request.h"
#include "jali/params/ckks/presets.h"

namespace jali::params {
namespace {

/// log2 of the factor by which a level's ratio is larger than the whole's.
double ratio_error(const ckks::Params& part, int level) {
  return std::log2(part.ratio(level)) - std::log2(part.whole().ratio(part.whole_level(level)));
}

bool is_matrix(const ckks::Params& params, int level) {
  const auto& b = *params.bootstrap();
  const int above = level - params.depth();
  const int stc = b.order == BootstrapOrder::raise_first ? b.stc_levels : 0;
  return above <= stc || above > stc + b.mod_levels();
}

std::size_t boot_limbs(const ckks::Params& params) {
  std::size_t sum = 0;
  for (int l = params.depth() + 1; l <= params.top(); ++l) sum += params.level(l).primes.size();
  return sum;
}

// Checks what holds for every part of any parameters.
void check_part(const ckks::Params& part, const ckks::Params& whole, int depth) {
  ASSERT_EQ(part.depth(), depth);
  ASSERT_EQ(part.top() - part.depth(), whole.top() - whole.depth());
  EXPECT_EQ(&part.whole(), &whole);
  EXPECT_TRUE(std::ranges::equal(part.sparse_p_primes(), whole.sparse_p_primes()));
  for (int l = 0; l <= depth; ++l) {
    EXPECT_EQ(part.level(l).primes, whole.level(l).primes);
    EXPECT_EQ(part.scale(l), whole.scale(l));
    EXPECT_EQ(part.ratio(l), whole.ratio(l));
  }
  for (int l = depth + 1; l <= part.top(); ++l) {
    SCOPED_TRACE("level " + std::to_string(l));
    const rlwe::Level& level = part.level(l);
    const int same = part.whole_level(l);
    const rlwe::Level& there = whole.level(same);
    // The keys for the whole's level have these primes and digits.
    EXPECT_TRUE(std::ranges::is_sorted(level.primes));
    EXPECT_EQ(std::ranges::adjacent_find(level.primes), level.primes.end());
    const auto key = whole.key_primes(same);
    EXPECT_TRUE(std::ranges::includes(key, level.primes));
    EXPECT_LT(level.primes.back(), whole.q_count());
    EXPECT_LT(level.digit_ids.back(), whole.key_digits(same));
    std::size_t limbs = 0;
    for (std::size_t d = 0; d < level.digit_ids.size(); ++d) {
      for (std::uint32_t i = 0; i < level.digit_limbs[d]; ++i, ++limbs) {
        EXPECT_GE(level.primes[limbs], whole.digit_begin(level.digit_ids[d]));
        EXPECT_LT(level.primes[limbs], whole.digit_begin(level.digit_ids[d] + 1));
      }
    }
    EXPECT_EQ(limbs, level.primes.size());
    EXPECT_LE(level.primes.size(), there.primes.size());
    // Ratios are nearly those of the whole. Those of matrices may be larger.
    EXPECT_NEAR(level.log_q - part.level(l - 1).log_q, std::log2(part.ratio(l)), 1e-9);
    const double error = ratio_error(part, l);
    EXPECT_GE(error, is_matrix(part, l) ? -0.2 : -0.5);
    if (!is_matrix(part, l)) {
      EXPECT_LE(error, 1.5);
      EXPECT_NEAR(std::log2(part.scale(l)), std::log2(whole.scale(same)), 0.75);
    }
  }
  // T_2, T_4 .. of the reduction come out at the scales of their levels.
  const auto& b = *part.bootstrap();
  for (int l = part.top() - b.cts_levels, power = 2; power <= b.degree; --l, power *= 2) {
    const double scale = part.scale(l);
    EXPECT_NEAR(std::log2(scale * scale / part.ratio(l) / part.scale(l - 1)), 0, 0.05);
  }
}

TEST(PartLevels, EveryDepthOfEveryPresetHasThem) {
  for (const BootstrapPreset& p : bootstrap_presets()) {
    for (const Word word : {Word::w32, Word::w52}) {
      const auto whole = ckks::Params::create(preset(p.name, word));
      std::set<std::array<std::uint8_t, 32>> hashes{whole->hash()};
      std::size_t limbs = boot_limbs(*whole);
      for (int depth = whole->depth() - 1; depth >= whole->bootstrap()->input_level(); --depth) {
        SCOPED_TRACE(std::string(p.name) + " " + std::string(word_name(word)) + " depth " +
                     std::to_string(depth));
        const auto part = whole->with_depth(depth);
        ASSERT_NE(part, nullptr);
        check_part(*part, *whole, depth);
        EXPECT_TRUE(hashes.insert(part->hash()).second);
        EXPECT_LT(boot_limbs(*part), limbs);
        limbs = boot_limbs(*part);
      }
    }
  }
}

// The cost falls with the levels: there are fewer limbs in proportion to the bits.
TEST(PartLevels, CostAsMuchLessAsTheyAreSmaller) {
  for (const BootstrapPreset& p : bootstrap_presets()) {
    const auto whole = ckks::Params::create(preset(p.name, Word::w32));
    const auto bits = [](const ckks::Params& params) {
      double sum = 0;
      for (int l = params.depth() + 1; l <= params.top(); ++l) sum += params.level(l).log_q;
      return sum;
    };
    for (int depth = whole->bootstrap()->input_level(); depth < whole->depth(); depth += 3) {
      const auto part = whole->with_depth(depth);
      const double limbs =
          static_cast<double>(boot_limbs(*part)) / static_cast<double>(boot_limbs(*whole));
      EXPECT_LT(limbs, 1.03 * bits(*part) / bits(*whole)) << p.name << " " << depth;
      const int top = part->top();
      EXPECT_LE(part->level(top).digit_ids.size(), whole->level(whole->top()).digit_ids.size());
    }
  }
}

TEST(PartLevels, AreAFunctionOfTheWholeAndTheDepth) {
  const auto whole = ckks::Params::create(preset("n16_fast", Word::w32));
  const auto some = whole->with_depth(7), fewer = whole->with_depth(5);
  EXPECT_EQ(some->hash(), whole->with_depth(7)->hash());
  // A part of a part is a part of the whole, whose keys it uses.
  const auto again = some->with_depth(5);
  EXPECT_EQ(again->hash(), fewer->hash());
  EXPECT_EQ(&again->whole(), whole.get());
  EXPECT_THROW(some->with_depth(8), InvalidArgument);
  EXPECT_EQ(ckks::Params::create(preset("n16_d30"))->with_depth(3), nullptr);
}

// Few parameters of create_with_bootstrap lack a part. As a rule it is the one with one level less,
// because there are hardly any 32-bit primes of a size that leaves out just one level's bits, or
// the levels have few bits.
TEST(PartLevels, NearlyAllThatCanBeBuiltHaveThem) {
  int parts = 0, none = 0;
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const int precision : {12, 20, 28}) {
      for (const int left : {3, 10}) {
        BootstrapRequest request;
        request.name = "insecure_test";
        request.security = 0;
        request.log_n = 11;
        request.order = order;
        request.word = Word::w32;
        request.precision_bits = precision;
        request.levels_after = left;
        const auto whole = create_with_bootstrap(request);
        for (int depth = whole->bootstrap()->input_level(); depth < whole->depth(); ++depth) {
          SCOPED_TRACE("bits " + std::to_string(precision) + " left " + std::to_string(left) +
                       " depth " + std::to_string(depth));
          const auto part = whole->with_depth(depth);
          ++(part ? parts : none);
          if (part) check_part(*part, *whole, depth);
        }
      }
    }
  }
  EXPECT_LT(none * 12, parts);
}

}  // namespace
}  // namespace jali::params
