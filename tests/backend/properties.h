// Mathematical properties of operations, checked without another engine. All checks need at least 9
// primes.
#pragma once

#include <cmath>

#include "jali/backend/ref/crt.h"
#include "support.h"

namespace jali::backend::test {

/// The number of limbs of each digit.
using Digits = std::vector<u32>;

/// intt(ntt(x)) = x; ntt(s x + y) = s ntt(x) + ntt(y); ntt gives the polynomial's values, by
/// Horner's rule.
inline void check_transforms(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  const std::size_t n = config.n;
  const PrimeList primes = range(0, 4);
  Block x(config, primes, 2), y(config, primes, 2), sum(config, primes, 2);
  x.random(rng);
  y.random(rng);
  const Block coefficients = x;
  std::vector<u64> s;
  for (const PrimeIndex p : primes) s.push_back(below(rng, config.primes[p]));
  engine.ring().mul_scalar(sum, x, s);
  engine.ring().add(sum, sum, y);
  for (Block* b : {&x, &y, &sum}) engine.ring().ntt(*b);
  for (int i = 0; i < 4; ++i) {
    const std::size_t k = below(rng, n), limb = below(rng, 4);
    const u64 q = x.prime(limb), psi = engine.ring().root(primes[limb]);
    EXPECT_EQ(ref::power(psi, n, q), q - 1);
    EXPECT_EQ(x.at(limb, 1, k), transformed(coefficients, limb, 1, k, psi))
        << "limb " << limb << " index " << k;
  }
  Block combined = y;
  engine.ring().mul_scalar_add(combined, x, s);
  EXPECT_TRUE(same(sum, combined));
  engine.ring().intt(x);
  EXPECT_TRUE(same(x, coefficients));
}

/// sigma_g sigma_h = sigma_gh; sigma_g sigma_(1/g) = 1; sigma_g on values agrees with X^j -> X^(jg)
/// on coefficients.
inline void check_automorphisms(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  const u64 order = 2 * config.n;
  Block x(config, range(1, 4), 2);
  x.random(rng);
  for (int i = 0; i < 3; ++i) {
    const u64 g = below(rng, config.n) * 2 + 1;
    const u64 h = i == 0 ? order - 1 : below(rng, config.n) * 2 + 1;
    u64 inverse = 1;
    while (g * inverse % order != 1) inverse += 2;
    const auto apply = [&](const Block& in, u64 by) {
      Block out(config, in.primes(), in.batch());
      engine.ring().automorphism_ntt(out, in, by);
      return out;
    };
    EXPECT_TRUE(same(apply(apply(x, g), h), apply(x, g * h % order)));
    EXPECT_TRUE(same(apply(apply(x, g), inverse), x));
    Block values = x, image = x;
    for (std::size_t limb = 0; limb < x.primes().size(); ++limb) {
      for (std::size_t j = 0; j < x.batch(); ++j) {
        for (std::size_t k = 0; k < config.n; ++k) {
          const u64 at = k * g % order, c = x.at(limb, j, k);
          image.set(limb, j, at % config.n, at < config.n || c == 0 ? c : x.prime(limb) - c);
        }
      }
    }
    engine.ring().ntt(values);
    engine.ring().ntt(image);
    EXPECT_TRUE(same(apply(values, g), image));
  }
}

/// The block of a digit equals x on the digit's primes, and is one integer of size at most |D|/2,
/// up to the rounding that rlwe_ops.h allows, on all of them.
inline void check_mod_up(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  const PrimeList x_primes = {0, 1, 3, 4, 5, 7}, ext_primes = range(0, 9);
  for (const Digits& digits : {Digits{6}, Digits{2, 2, 2}, Digits{3, 1, 2}}) {
    for (const Fill fill : kFills) {
      Block x(config, x_primes, 2);
      x.fill(fill, rng);
      Block values = x;
      engine.ring().ntt(values);
      Block ext(config, ext_primes, 2, digits.size());
      engine.rlwe().mod_up(ext, values, digits);
      std::size_t first = 0;
      for (std::size_t d = 0; d < digits.size(); first += digits[d++]) {
        const PrimeList own(x_primes.begin() + static_cast<std::ptrdiff_t>(first),
                            x_primes.begin() + static_cast<std::ptrdiff_t>(first + digits[d]));
        Block block(config, ext_primes, 2), source(config, own, 2);
        std::memcpy(block.view().data, ext.view(d).data, block.bytes());
        engine.ring().intt(block);
        for (std::size_t i = 0; i < own.size(); ++i) {
          for (std::size_t j = 0; j < 2; ++j) {
            for (std::size_t k = 0; k < config.n; ++k) {
              const u64 want = x.at(first + i, j, k);
              source.set(i, j, k, want);
              ASSERT_EQ(block.at(own[i], j, k), want) << "digit " << d << " limb " << i;
            }
          }
        }
        const Natural big = product(config, ext_primes), small = product(config, own);
        Natural slack = small;  // far above the rounding error of the sum of doubles
        slack.divide(u64{1} << 40);
        const std::vector<Natural> lifted = integers(engine, block);
        const std::vector<Natural> below_d = integers(engine, source);
        for (std::size_t i = 0; i < lifted.size(); ++i) {
          const bool negative = lifted[i] + lifted[i] > big;
          const Natural size = negative ? big - lifted[i] : lifted[i];
          ASSERT_LE(size + size, small + slack + slack) << "digit " << d << " coefficient " << i;
          ASSERT_EQ(negative ? small - size : size, below_d[i]);
        }
      }
    }
  }
}

/// |out - x A / D| <= 1/2 in every coefficient: |2 (D out - x A)| <= D modulo D K A.
inline void check_scale_down(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  struct Case {
    PrimeList from, to;
  };
  const Case cases[] = {{range(0, 4), range(0, 3)},  // rescale by one prime
                        {range(0, 9), range(0, 5)},  // mod down by several
                        {{1, 3, 5}, {1, 2, 3, 4}},  // rational: drops one, adds two
                        {{0, 1, 2, 6, 7}, {0, 1, 3, 8}},  // rational, scattered
                        {{0, 1}, {2}},  // nothing kept
                        {range(2, 5), range(0, 6)},  // only adds
                        {range(2, 5), range(2, 5)}};  // nothing at all
  for (const Case& c : cases) {
    PrimeList dropped, added;
    std::ranges::set_difference(c.from, c.to, std::back_inserter(dropped));
    std::ranges::set_difference(c.to, c.from, std::back_inserter(added));
    const Natural d = product(config, dropped), modulus_in = product(config, c.from);
    Natural modulus = modulus_in;  // the modulus of x A
    for (const PrimeIndex p : added) modulus = modulus * config.primes[p];
    Natural slack = d;
    slack.divide(u64{1} << 40);
    for (const Fill fill : kFills) {
      Block x(config, c.from, 2);
      x.fill(fill, rng);
      Block values = x, out(config, c.to, 2);
      engine.ring().ntt(values);
      engine.rlwe().scale_down(out, values, nullptr);
      engine.ring().intt(out);
      const std::vector<Natural> before = integers(engine, x), after = integers(engine, out);
      for (std::size_t i = 0; i < before.size(); ++i) {
        Natural exact = before[i], scaled = after[i];
        for (const PrimeIndex p : added) exact = exact * config.primes[p];
        for (const PrimeIndex p : dropped) scaled = scaled * config.primes[p];
        Natural off = exact >= scaled ? exact - scaled : scaled - exact;
        if (off + off > modulus) off = modulus - off;
        ASSERT_LE(off + off, d + slack + slack) << "coefficient " << i;
      }
    }
  }
}

/// key_switch is mod_up followed by key_product. An addend is added, and so is a tensor product.
/// Accumulation adds to the output. sigma_g commutes with mod_up.
inline void check_key_switch(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  const PrimeList x_primes = range(0, 5), ext_primes = {0, 1, 2, 3, 4, 7, 8};
  for (const Digits& digits : {Digits{5}, Digits{2, 3}, Digits{1, 1, 1, 1, 1}, Digits{2, 2, 1}}) {
    const Key key(config, digits.size() + 1, rng);
    Digits ids(digits.size());
    std::iota(ids.rbegin(), ids.rend(), u32{1});
    Block x(config, x_primes, 2);
    x.random(rng);
    Block ext(config, ext_primes, 2, digits.size());
    engine.rlwe().mod_up(ext, x, digits);
    Block a0(config, ext_primes, 2), a1 = a0, b0 = a0, b1 = a0;
    engine.rlwe().key_product(a0, a1, ext, key.view(), ids, 1, false);
    engine.rlwe().key_switch(b0, b1, x, digits, key.view(), ids);
    EXPECT_TRUE(same(b0, a0));
    EXPECT_TRUE(same(b1, a1));

    std::vector<u64> s;
    for (const PrimeIndex p : x_primes) s.push_back(below(rng, config.primes[p]));
    {
      Block c0(config, x_primes, 2), c1 = c0, d0 = c0, d1 = c0, d2 = c0;
      Block e0 = c0, e1 = c0;
      for (Block* block : {&c0, &c1, &e0, &e1}) block->random(rng);
      engine.rlwe().tensor(d0, d1, d2, c0, c1, e0, e1);
      Block sum0(config, ext_primes, 2), sum1 = sum0, joined0 = sum0, joined1 = sum0;
      engine.rlwe().key_switch(sum0, sum1, d2, digits, key.view(), ids);
      const auto own = std::span(ext_primes).first(x_primes.size());
      engine.ring().mul_scalar_add(View{sum0.view().data, own, 2}, d0, s);
      engine.ring().mul_scalar_add(View{sum1.view().data, own, 2}, d1, s);
      engine.rlwe().key_switch_add(joined0, joined1, d2, digits, key.view(), ids, {d0, d1, s});
      EXPECT_TRUE(same(joined0, sum0));
      EXPECT_TRUE(same(joined1, sum1));
      Block product0(config, ext_primes, 2), product1 = product0;
      const Combination::Product product{c0, c1, e0, e1};
      engine.rlwe().combine_key_switch(product0, product1, {{&product, 1}}, s, digits, key.view(),
                                       ids);
      EXPECT_TRUE(same(product0, sum0));
      EXPECT_TRUE(same(product1, sum1));

      const u64 g = 5;
      Block turned0 = d0, turned1 = d0, out0 = d0, out1 = d0, rotated0 = d0, rotated1 = d0;
      engine.ring().automorphism_ntt(turned0, c0, g),
          engine.ring().automorphism_ntt(turned1, c1, g);
      engine.rlwe().key_switch(sum0, sum1, turned1, digits, key.view(), ids);
      const ConstView addend = turned0;
      engine.rlwe().scale_down_pair(out0, out1, sum0, sum1, &addend, nullptr);
      engine.rlwe().rotate(rotated0, rotated1, joined0, joined1, c0, c1, g, digits, key.view(),
                           ids);
      EXPECT_TRUE(same(joined0, sum0));
      EXPECT_TRUE(same(joined1, sum1));
      EXPECT_TRUE(same(rotated0, out0));
      EXPECT_TRUE(same(rotated1, out1));
    }

    const u64 g = 2 * config.n - 5;
    Block turned(config, ext_primes, 2, digits.size());
    for (std::size_t d = 0; d < digits.size(); ++d) {
      engine.ring().automorphism_ntt(turned.view(d), std::as_const(ext).view(d), g);
    }
    engine.rlwe().key_product(a0, a1, turned, key.view(), ids, 1, false);
    engine.rlwe().key_product(b0, b1, ext, key.view(), ids, g, false);
    EXPECT_TRUE(same(b0, a0));
    EXPECT_TRUE(same(b1, a1));

    Block sum0 = a0, sum1 = a1;
    engine.ring().add(sum0, sum0, a0);
    engine.ring().add(sum1, sum1, a1);
    engine.rlwe().key_product(a0, a1, ext, key.view(), ids, g, true);
    EXPECT_TRUE(same(a0, sum0));
    EXPECT_TRUE(same(a1, sum1));
  }
}

/// Every sum is two inner products, added to the output if it accumulates.
inline void check_weighted_sums(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  const PrimeList primes = {0, 2, 5};
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 9; ++i)
    blocks.emplace_back(config, primes, i < 6 || i == 8 ? 2 : 1).random(rng);
  const std::vector<ConstView> a0 = {blocks[0], blocks[1], blocks[2]};
  const std::vector<ConstView> a1 = {blocks[3], blocks[4], blocks[5]};
  const std::vector<ConstView> b = {blocks[6], blocks[8], blocks[7], blocks[6]};
  const std::vector<u32> operands = {2, 0, 2, 1};
  for (const bool accumulate : {false, true}) {
    Block out0(config, primes, 2), out1(config, primes, 2), want0 = out0, want1 = out1;
    out0.random(rng), out1.random(rng);
    std::vector<ConstView> of_a0, of_a1;
    for (const u32 k : operands) of_a0.push_back(a0[k]), of_a1.push_back(a1[k]);
    engine.ring().inner_product(want0, of_a0, b);
    engine.ring().inner_product(want1, of_a1, b);
    if (accumulate) engine.ring().add(want0, want0, out0), engine.ring().add(want1, want1, out1);
    const WeightedSum sum{out0, out1, operands, b, accumulate};
    engine.rlwe().weighted_sums(a0, a1, {&sum, 1});
    EXPECT_TRUE(same(out0, want0));
    EXPECT_TRUE(same(out1, want1));
  }
}

/// icrt(crt(x)) = x for every pair of methods; the methods agree; from_int64 and from_double give
/// the residues of their integers.
inline void check_integers(const Engine& engine, std::mt19937_64& rng) {
  const Config& config = engine.config();
  const std::size_t n = config.n, batch = 2;
  for (const std::size_t limbs : {1, 2, 5, 9}) {
    const PrimeList primes = range(9 - limbs, 9);
    const Natural q = product(config, primes);
    for (const std::size_t words : {q.words(), q.words() + 2}) {
      // Integers below q, drawn from the top word downwards. The first two are 0 and q - 1.
      std::vector<u64> flat(words * batch * n, 0);
      const Natural last = q - 1;
      for (std::size_t i = 0; i < batch * n; ++i) {
        for (std::size_t w = 0; w < q.words(); ++w) {
          u64& at = flat[w * batch * n + i];
          at = i == 0 ? 0 : i == 1 ? last.word(w) : rng();
          if (i > 1 && w + 1 == q.words()) at %= std::max<u64>(q.word(w), 1);
        }
      }
      Block mod(config, primes, batch), mul(config, primes, batch);
      engine.ring().crt(mod, flat, words, CrtMethod::mod);
      engine.ring().crt(mul, flat, words, CrtMethod::mul);
      EXPECT_TRUE(same(mod, mul));
      for (const IcrtMethod method : {IcrtMethod::product_sum, IcrtMethod::garner}) {
        std::vector<u64> back(flat.size(), 0xABABABABABABABAB);
        engine.ring().icrt(back, words, mod, method);
        EXPECT_EQ(back == flat, true) << limbs << " limbs, method " << static_cast<int>(method);
      }
      for (std::size_t i = 0; i < limbs; ++i) {
        EXPECT_EQ(mod.at(i, 0, 1), config.primes[primes[i]] - 1);
      }
    }
  }

  const PrimeList primes = range(0, 9);
  std::vector<std::int64_t> small(batch * n);
  std::vector<double> real(batch * n);
  for (std::size_t i = 0; i < small.size(); ++i) {
    small[i] = static_cast<std::int64_t>(rng()) >> below(rng, 63);
    real[i] =
        std::trunc(std::ldexp(static_cast<double>(small[i]), static_cast<int>(below(rng, 930))));
  }
  small[0] = INT64_MIN;
  small[1] = INT64_MAX;
  small[2] = -1;
  real[0] = -0x1.fffffffffffffp999;
  real[1] = -0.0;
  real[2] = 0x1.fffffffffffffp52;
  Block x(config, primes, batch), y(config, primes, batch);
  engine.ring().from_int64(x, small);
  engine.ring().from_double(y, real);
  for (std::size_t i = 0; i < primes.size(); ++i) {
    const u64 q = config.primes[primes[i]];
    for (std::size_t j = 0; j < small.size(); ++j) {
      const __int128 r = (static_cast<__int128>(small[j]) % static_cast<__int128>(q) + q) % q;
      ASSERT_EQ(x.at(i, j / n, j % n), static_cast<u64>(r)) << small[j];
      // The doubles are integers of up to 1000 bits; their words are computed one by one.
      int exponent = 0;
      const double fraction = std::frexp(std::abs(real[j]), &exponent);
      Natural whole(static_cast<u64>(std::ldexp(fraction, 53)));
      for (int e = 53; e < exponent; ++e) whole = whole + whole;
      for (int e = exponent; e < 53 && fraction != 0; ++e) whole.divide(2);
      const u64 m = whole % q;
      ASSERT_EQ(y.at(i, j / n, j % n), real[j] < 0 && m != 0 ? q - m : m) << real[j];
    }
  }
}

}  // namespace jali::backend::test
