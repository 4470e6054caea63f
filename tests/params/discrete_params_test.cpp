// Parameters of exact integers: what is chosen, what is refused, and that advice is true.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <regex>
#include <set>
#include <string>

#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/params/ckks/presets.h"
#include "jali/params/discrete/choose.h"
#include "jali/params/discrete/noise.h"
#include "jali/params/discrete/params.h"
#include "jali/params/discrete/presets.h"
#include "jali/params/security.h"
#include "jali/params/tfhe_presets.h"

namespace jali::discrete {
namespace {

ParamsPtr made(const Literal& l) { return Params::create(l); }

Literal of_depth(int depth) {
  Literal l;
  l.depth = depth;
  return l;
}

template <class E>
std::string refusal(const Literal& l) {
  try {
    Params::create(l);
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

std::optional<std::uint64_t> number_after(const std::string& text, const std::string& words) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(words + "(\\d+)"))) return std::nullopt;
  return std::stoull(found[1]);
}

TEST(DiscreteParams, KeysAreAsSecureAsTheTableSays) {
  for (const int security : {128, 192, 256}) {
    for (const int depth : {0, 1, 6}) {
      for (const auto multiplication : {Multiplication::bgv, Multiplication::bfv}) {
        Literal l = of_depth(depth);
        l.security = security;
        l.multiplication = multiplication;
        const auto p = made(l);
        EXPECT_GE(p->security(), security);
        // Exactly, over the primes that keys have; T and the basis of products are in none.
        EXPECT_TRUE(params::is_secure(p->primes(), p->log_n(), security));
        EXPECT_EQ(p->key_primes(-1).size(), p->q_count() + p->p_count());
        EXPECT_EQ(p->depth(), depth);
        const std::set<std::uint64_t> distinct(p->ring_primes().begin(), p->ring_primes().end());
        EXPECT_EQ(distinct.size(), p->ring_primes().size());
        for (const std::uint64_t q : p->ring_primes()) {
          EXPECT_TRUE(arith::is_prime(q));
          EXPECT_EQ(q % (2 * p->n()), 1);
        }
      }
    }
  }
}

TEST(DiscreteParams, TheModulusIsWhatWasAsked) {
  EXPECT_EQ(made(of_depth(6))->modulus().value(), 65537);
  EXPECT_EQ(made(of_depth(30))->modulus().value(), 786433) << "2N does not divide 65536 there";
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const int bits : {2, 8, 16, 17, 31, 32, 40, 48, 49, 50, 59}) {
      Literal l = of_depth(2);
      l.integers = bits;
      l.word = word;
      const auto p = made(l);
      const std::uint64_t t = p->modulus().value();
      EXPECT_GE(t, std::uint64_t{1} << bits);
      EXPECT_LE(p->modulus().low(), -(std::int64_t{1} << (bits - 1)));
      std::uint64_t product = 1;
      for (const PrimeIndex i : p->modulus_primes()) product *= p->ring_primes()[i];
      EXPECT_EQ(product, t);
      EXPECT_NO_THROW(NoiseModel(*p).range(-(std::int64_t{1} << (bits - 1)),
                                           (std::int64_t{1} << (bits - 1)) - 1));
    }
  }
}

// The product of two ciphertexts of a level, divided, has the factor of the next level.
TEST(DiscreteParams, FactorsFollowFromLevelToLevel) {
  for (const auto multiplication : {Multiplication::bgv, Multiplication::bfv}) {
    Literal l = of_depth(5);
    l.integers = 32;
    l.multiplication = multiplication;
    const auto p = made(l);
    const PlainModulus& t = p->modulus();
    for (int level = 0; level <= p->top(); ++level) {
      std::uint64_t q = 1;
      for (const PrimeIndex i : p->level(level).primes) q = t.mul(q, t.reduce(p->primes()[i]));
      EXPECT_EQ(p->q_mod_t(level), q);
      EXPECT_NE(t.inverse(p->factor(level)), 0);
      const std::uint64_t f = p->factor(level), square = t.mul(f, f);
      if (multiplication == Multiplication::bfv) {
        EXPECT_EQ(t.mul(f, q), t.neg(square)) << "-f f / Q is f";
        double bits = 0;
        for (const PrimeIndex i : p->product_primes(level)) {
          bits += std::log2(static_cast<double>(p->ring_primes()[i]));
        }
        EXPECT_GT(bits, p->level(level).log_q + std::log2(t.as_double()) + p->log_n() + 2);
      } else if (level > 0) {
        EXPECT_EQ(t.mul(p->factor(level - 1), p->quotient(level, level - 1)), square);
        EXPECT_TRUE(p->product_primes(level).empty());
      }
    }
    EXPECT_EQ(p->factor(p->top()), t.neg(p->q_mod_t(p->top())));
  }
}

TEST(DiscreteParams, ALiteralWithEveryChoiceMakesTheSame) {
  for (int i = 0; i < 6; ++i) {
    Literal l = of_depth(i);
    if (i % 3 == 1) l.integers = 59;
    if (i % 3 == 2) l.multiplication = Multiplication::bfv;
    if (i == 5) l.word = Word::w32;
    const auto p = made(l), again = made(p->literal());
    EXPECT_EQ(p->hash(), again->hash());
    EXPECT_TRUE(std::ranges::equal(p->ring_primes(), again->ring_primes()));
    EXPECT_EQ(p->literal().log_n, p->log_n());
    EXPECT_EQ(static_cast<std::size_t>(p->literal().dnum), p->dnum());
  }
}

TEST(DiscreteParams, WhatComputesDifferentlyHasAnotherHash) {
  std::set<rlwe::ParamsHash> hashes;
  Literal l = of_depth(2);
  l.log_n = 14;
  hashes.insert(made(l)->hash());
  l.multiplication = Multiplication::bfv;
  hashes.insert(made(l)->hash());
  l.multiplication = Multiplication::bgv;
  l.modulus = 786433;
  hashes.insert(made(l)->hash());
  l.depth = 3;
  hashes.insert(made(l)->hash());
  l.packing = Packing::coefficients;
  hashes.insert(made(l)->hash());
  EXPECT_EQ(hashes.size(), 5);
  l.name = "a name";
  EXPECT_TRUE(hashes.contains(made(l)->hash()));
}

TEST(DiscreteParams, BadValuesAreRefused) {
  const auto refused = [](auto change) {
    Literal l;
    change(l);
    EXPECT_THROW(Params::create(l), InvalidArgument);
  };
  refused([](Literal& l) { l.depth = -1; });
  refused([](Literal& l) { l.depth = 201; });
  refused([](Literal& l) { l.log_n = 9; });
  refused([](Literal& l) { l.log_n = 18; });
  refused([](Literal& l) { l.dnum = -1; });
  refused([](Literal& l) { l.integers = 1; });
  refused([](Literal& l) { l.integers = 60; });
  refused([](Literal& l) { l.security = 100; });
  refused([](Literal& l) { l.name = "\n"; });
  refused([](Literal& l) { l.modulus = 65537, l.integers = 8; });
  refused([](Literal& l) { l.packing = static_cast<Packing>(2); });
  refused([](Literal& l) { l.multiplication = static_cast<Multiplication>(2); });
  refused([](Literal& l) { l.word = static_cast<Word>(3); });
  for (const std::uint64_t t : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2},
                                std::uint64_t{65536}, std::uint64_t{101}, std::uint64_t{65539},
                                std::uint64_t{65537} * 786433, ~std::uint64_t{0}}) {
    refused([&](Literal& l) { l.modulus = t; });
  }
  for (const std::uint64_t t :
       {std::uint64_t{1}, (std::uint64_t{1} << 61) + 1, ~std::uint64_t{0}}) {
    refused([&](Literal& l) { l.modulus = t, l.packing = Packing::coefficients; });
  }
  Literal insecure;
  insecure.security = 0;
  insecure.log_n = 10;
  EXPECT_THROW(Params::create(insecure), InsecureParams);
  insecure.name = "insecure_x";
  EXPECT_EQ(made(insecure)->security(), 0);
  insecure.log_n = 0;
  EXPECT_THROW(Params::create(insecure), InvalidArgument);
}

TEST(DiscreteParams, AdviceIsTrue) {
  Literal deep = of_depth(30);
  deep.modulus = 65537;
  const std::string text = refusal<InsecureParams>(deep);
  const auto modulus = number_after(text, "use modulus="), depth = number_after(text, "depth <= ");
  ASSERT_TRUE(modulus && depth) << text;
  Literal other = deep;
  other.modulus = *modulus;
  EXPECT_EQ(made(other)->depth(), 30);
  other = deep;
  other.depth = static_cast<int>(*depth);
  EXPECT_EQ(made(other)->depth(), other.depth);
  other.depth += 1;
  EXPECT_THROW(made(other), InsecureParams) << "and that is the largest";

  Literal narrow = of_depth(4);
  narrow.log_n = 12;
  const auto log_n = number_after(refusal<InsecureParams>(narrow), "gives log_n ");
  ASSERT_TRUE(log_n);
  narrow.log_n = static_cast<int>(*log_n);
  EXPECT_EQ(made(narrow)->depth(), 4);

  Literal wrong;
  wrong.modulus = 1000003;
  const auto bits = number_after(refusal<InvalidArgument>(wrong), "integers=");
  ASSERT_TRUE(bits);
  wrong.modulus.reset();
  wrong.integers = static_cast<int>(*bits);
  EXPECT_GE(made(wrong)->modulus().value(), 1000003);

  Literal small_ring;
  small_ring.modulus = 65537;
  small_ring.log_n = 16;
  EXPECT_EQ(number_after(refusal<InvalidArgument>(small_ring), "use modulus="), 786433);
  small_ring.modulus = 786433;
  EXPECT_EQ(made(small_ring)->log_n(), 16);

  EXPECT_NE(refusal<InsecureParams>(of_depth(200)).find("depth <= "), std::string::npos);
}

// In every word that has its primes, a preset's keys are as secure as the table says, and it is
// what its file says. The ring is the smallest.
TEST(DiscretePresets, AreSecureAndAsNamed) {
  std::set<std::string_view> names;
  for (const auto& p : params::presets()) names.insert(p.name);
  for (const auto& p : params::bootstrap_presets()) names.insert(p.name);
  for (const auto& p : tfhe::presets()) names.insert(p.name);
  for (const Preset& row : presets()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "jali params knows a preset by its name alone";
    int words = 0;
    for (const auto word : {std::optional<Word>{}, std::optional{Word::w32},
                            std::optional{Word::w52}, std::optional{Word::w64}}) {
      ParamsPtr p;
      try {
        p = made(preset(row.name, word));
      } catch (const Error&) {
        ASSERT_TRUE(word) << "the word that is chosen exists";
        continue;
      }
      ++words;
      EXPECT_TRUE(params::is_secure(p->primes(), row.log_n, 128));
      EXPECT_GE(p->security(), 128);
      EXPECT_EQ(p->log_n(), row.log_n);
      EXPECT_EQ(p->depth(), row.depth);
      EXPECT_EQ(p->multiplication(), row.multiplication);
      EXPECT_EQ(p->packing(), row.packing);
      if (row.modulus) {
        EXPECT_EQ(p->modulus().value(), *row.modulus);
      } else {
        EXPECT_LE(p->modulus().low(), -(std::int64_t{1} << (row.integers - 1)));
        EXPECT_GE(p->modulus().high(), (std::int64_t{1} << (row.integers - 1)) - 1);
      }
      for (const double bits : circuit_budgets(*p)) EXPECT_GT(bits, 0.5);
      if (row.packing == Packing::coefficients) {
        EXPECT_GT(circuit_budgets(*p).front(), 50) << "up to 2^50 owners";
      }
      EXPECT_EQ(made(p->literal())->hash(), p->hash());
    }
    EXPECT_GE(words, 3);
    Literal smaller = preset(row.name);
    if (--smaller.log_n >= params::kMinLogN) {
      EXPECT_THROW(made(smaller), Error);
    }
  }
  try {
    preset("int64_d9");
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("int32_d8, "), std::string::npos);
  }
}

TEST(DiscreteParams, CoefficientsTakeAnyModulus) {
  for (const std::uint64_t t :
       {kTwoTo64, std::uint64_t{1} << 63, std::uint64_t{1} << 32, std::uint64_t{2},
        std::uint64_t{1000}, (std::uint64_t{1} << 61) - 1, std::uint64_t{65537}}) {
    Literal l = of_depth(0);
    l.modulus = t;
    l.packing = Packing::coefficients;
    const auto p = made(l);
    EXPECT_EQ(p->modulus().value(), t);
    EXPECT_TRUE(p->aux_primes().empty());
    EXPECT_NE(p->modulus().inverse(p->q_mod_t(0)), 0) << "Q is prime to T";
    EXPECT_GE(p->security(), 128);
  }
}

// A bound that has outgrown doubles says nothing, and a division does not change that.
TEST(DiscreteNoiseModel, WhatIsNotKnownStaysUnknown) {
  Literal l = of_depth(40);
  const auto p = made(l);
  const NoiseModel model(*p);
  const Range range{-1, 1, false};
  for (const double lost : {kUnbounded, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    const Estimate unknown{lost, lost, range};
    for (const Estimate& e :
         {unknown, model.divide(unknown, p->top(), 0),
          model.add(unknown, unknown, Overflow::refuse),
          model.multiply_bgv(unknown, model.fresh_secret(range), false, Overflow::refuse),
          model.multiply_bfv(unknown, model.fresh_secret(range), false, 1, Overflow::refuse),
          model.key_switch(unknown, 3), model.multiply_integer(unknown, 1, Overflow::refuse)}) {
      EXPECT_FALSE(model.fits(e, p->top()));
      EXPECT_THROW(model.require_budget(e, p->top()), DepthExhausted);
    }
  }
  EXPECT_TRUE(model.fits(model.fresh_public(range), 0));
}

TEST(PlainModulusTest, IsArithmeticOfIntegers) {
  __extension__ using Wide = __int128;
  for (const std::uint64_t t :
       {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{65537},
        (std::uint64_t{1} << 61) - 1, std::uint64_t{1} << 62, std::uint64_t{1} << 63, kTwoTo64}) {
    const PlainModulus m(t);
    const Wide modulus = t == kTwoTo64 ? Wide{1} << 64 : static_cast<Wide>(t);
    EXPECT_EQ(Wide{m.high()} - m.low() + 1, modulus);
    std::uint64_t x = 88172645463325252;
    for (int i = 0; i < 2000; ++i) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      const std::uint64_t a = m.reduce(x), b = m.reduce(x * 31 + 7);
      EXPECT_EQ(static_cast<Wide>(a), static_cast<Wide>(x) % modulus);
      EXPECT_EQ(m.sub(a, b),
                static_cast<std::uint64_t>((static_cast<Wide>(a) - b + modulus) % modulus));
      EXPECT_EQ(m.reduce_signed(m.centred(a)), a);
      EXPECT_GE(m.centred(a), m.low());
      EXPECT_LE(m.centred(a), m.high());
      EXPECT_EQ(m.mul(m.reduce(x % 4096), m.reduce(x >> 52)),
                static_cast<std::uint64_t>(static_cast<Wide>(m.reduce(x % 4096)) *
                                           m.reduce(x >> 52) % modulus));
      EXPECT_EQ(m.shift_in(m.reduce(x >> 40), x),
                static_cast<std::uint64_t>(((static_cast<Wide>(m.reduce(x >> 40)) << 64) % modulus +
                                            static_cast<Wide>(x)) %
                                           modulus));
      const std::uint64_t inverse = m.inverse(a);
      if (inverse != 0) {
        EXPECT_EQ(m.mul(a, inverse), m.reduce(1));
      }
    }
  }
}

}  // namespace
}  // namespace jali::discrete
