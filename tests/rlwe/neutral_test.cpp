// Parameters, keys and key switching of RLWE by itself. This program links no scheme.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/params/rlwe_params.h"
#include "jali/rlwe/host_ring.h"
#include "jali/rlwe/key_switch.h"
#include "jali/rlwe/secret/key_generator.h"

namespace jali::rlwe {
namespace {

constexpr int kLogN = 10;

/// Four q primes in two digits, and three p primes. Of the three levels, the lowest is not a prefix
/// of the primes.
ParamsSpec spec(Word word) {
  ParamsSpec s;
  s.log_n = kLogN;
  s.word = word;
  std::uint64_t bound = std::uint64_t{1} << (word_prime_bits(word) - 1);
  const auto next = [&] {
    bound = *arith::prime_below(bound, std::uint64_t{2} << kLogN);
    return bound;
  };
  s.p = {next(), next(), next()};  // the largest, so that P is above every digit
  s.q = {next(), next(), next(), next()};
  s.levels = {{1}, {0, 2}, {0, 1, 2, 3}};
  s.digit_begin = {0, 2, 4};
  s.hash[0] = 5;
  return s;
}

class Neutral : public ::testing::TestWithParam<Word> {};
INSTANTIATE_TEST_SUITE_P(Words, Neutral, ::testing::Values(Word::w32, Word::w52, Word::w64),
                         [](const auto& info) { return std::string(word_name(info.param)); });

TEST_P(Neutral, ParametersAreWhatTheSpecSays) {
  const ParamsSpec s = spec(GetParam());
  const Params p(s);
  EXPECT_EQ(p.n(), std::size_t{1} << kLogN);
  EXPECT_EQ(p.q_count(), 4U);
  EXPECT_EQ(p.p_count(), 3U);
  EXPECT_EQ(p.top(), 2);
  EXPECT_EQ(p.hash(), s.hash);
  EXPECT_EQ(p.security(), 0);
  EXPECT_EQ(p.level(0).digit_ids, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(p.level(1).digit_ids, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(p.level(1).digit_limbs, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(p.level(2).digit_limbs, (std::vector<std::uint32_t>{2, 2}));
  EXPECT_NEAR(p.log_q(), p.level(2).log_q, 1e-9);
  EXPECT_EQ(p.key_primes(0), (std::vector<PrimeIndex>{1, 4, 5, 6}));
  EXPECT_EQ(p.key_primes(1), (std::vector<PrimeIndex>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(p.key_digits(0), 1U);
  EXPECT_EQ(p.key_digits(-1), 2U);
  EXPECT_THROW(p.level(3), InvalidArgument);
  EXPECT_THROW(p.level(-1), InvalidArgument);
}

TEST_P(Neutral, BadSpecsAreRefused) {
  const auto refused = [](ParamsSpec s) { EXPECT_THROW(Params{s}, InvalidArgument); };
  ParamsSpec s = spec(GetParam());
  s.levels = {};
  refused(s);
  s.levels = {{1, 0}};
  refused(s);
  s.levels = {{0, 4}};  // 4 is the index of a prime of P
  refused(s);
  s.levels = {{}};
  refused(s);
  s = spec(GetParam());
  for (const std::vector<std::size_t>& digits :
       {std::vector<std::size_t>{}, {0}, {0, 3}, {1, 4}, {0, 2, 2, 4}}) {
    s.digit_begin = digits;
    refused(s);
  }
  s = spec(GetParam());
  s.log_n = 9;
  refused(s);
  s = spec(GetParam());
  s.security = 128;
  EXPECT_THROW(Params{s}, InsecureParams);
}

TEST_P(Neutral, KeysSwitchAtEveryLevel) {
  const auto params = std::make_shared<const Params>(spec(GetParam()));
  const auto ring = make_host_ring(*params);
  KeyGenerator generator(params, ring);
  const SecretKey sk = generator.secret_key();
  const KeySwitcher switcher(params, ring);
  const auto key = expand(*ring, *params, generator.relinearisation_key(sk));
  for (int level = 0; level <= params->top(); ++level) {
    const auto& primes = params->level(level).primes;
    random::Seed seed{};
    seed[0] = static_cast<std::uint8_t>(level + 1);
    const ring::Poly x = expand_uniform(*ring, seed, 0, primes, 2);
    const Accumulator acc = switcher.switch_key(x, level, key);
    // c0 + c1 s - x s^2 is small. Its variance is little more than that of the rounding of ModDown,
    // (1 + 2N/3) / 12.
    const auto& ops = ring->ops();
    const ring::Poly s = sk.at(*ring, primes);
    ring::Poly e = switcher.reduce(acc.c1, level);
    ops.mul(e.view(), e.view(), s.view());
    ops.add(e.view(), e.view(), switcher.reduce(acc.c0, level).view());
    ring::Poly y = ring->copy(x);
    ops.mul(y.view(), y.view(), s.view());
    ops.mul(y.view(), y.view(), s.view());
    ops.sub(e.view(), e.view(), y.view());
    ring->to_coeff(e);
    double largest = 0, sum = 0;
    const auto numbers = ring::to_doubles(*ring, e, 1);
    for (const double v : numbers) {
      largest = std::max(largest, std::fabs(v));
      sum += v * v;
    }
    const double n = static_cast<double>(params->n());
    const double rounding = std::sqrt((1 + 2 * n / 3) / 12);
    const double deviation = std::sqrt(sum / static_cast<double>(numbers.size()));
    EXPECT_GT(deviation, 0.7 * rounding) << "level " << level;
    EXPECT_LT(deviation, 2 * rounding) << "level " << level;
    EXPECT_LT(largest, 16 * rounding) << "level " << level;
  }
}

TEST_P(Neutral, WithoutASparseSecretThereAreNoKeysForIt) {
  const auto params = std::make_shared<const Params>(spec(GetParam()));
  const auto ring = make_host_ring(*params);
  KeyGenerator generator(params, ring);
  const SecretKey sk = generator.secret_key();
  EXPECT_THROW(generator.encapsulation_keys(sk), InvalidArgument);
  const int rotations[] = {1, -1};
  EXPECT_EQ(generator.evaluation_keys(sk, rotations, true).bytes(),
            params->key_bytes(rotations, true));
}

}  // namespace
}  // namespace jali::rlwe
