// Runs every operation of an engine on inputs that depend on the seed alone, so that the outputs of
// two engines can be compared bit for bit.
#pragma once

#include <cmath>

#include "../support.h"

namespace jali::backend::test {

struct Output {
  std::string name;
  Block block;
};

/// `config` must have at least 8 primes. Outputs are poisoned before.
inline std::vector<Output> every_operation(const Engine& engine, const Config& config,
                                           std::size_t batch, Fill fill, u64 seed) {
  std::mt19937_64 rng(seed);
  std::vector<Output> outputs;
  const PrimeList all = range(0, config.primes.size());
  const PrimeList some = {0, 2, 3, 5, 6};
  const auto fresh = [&](const PrimeList& primes, std::size_t b, std::size_t blocks = 1) {
    Block x(config, primes, b, blocks);
    x.fill(fill, rng);
    return x;
  };
  const auto blank = [&](const PrimeList& primes, std::size_t blocks = 1) {
    return Block(config, primes, batch, blocks);
  };
  const auto keep = [&](const char* name, Block block) {
    outputs.push_back({name, std::move(block)});
  };
  const Block a = fresh(some, batch), b = fresh(some, batch), c = fresh(some, batch),
              d = fresh(some, batch), single = fresh(some, 1);
  std::vector<u64> s;
  for (const PrimeIndex p : some)
    s.push_back(fill == Fill::max ? config.primes[p] - 1 : below(rng, config.primes[p]));
  const auto in_place = [&](const char* name, auto run) {
    Block x = a;
    run(x);
    keep(name, std::move(x));
  };
  const auto apart = [&](const char* name, auto run) {
    Block x = blank(some);
    run(x);
    keep(name, std::move(x));
  };
  in_place("ntt", [&](Block& x) { engine.ring().ntt(x); });
  in_place("intt", [&](Block& x) { engine.ring().intt(x); });
  apart("add", [&](Block& x) { engine.ring().add(x, a, b); });
  apart("add broadcast", [&](Block& x) { engine.ring().add(x, a, single); });
  in_place("add in place", [&](Block& x) { engine.ring().add(x, x, x); });
  apart("sub", [&](Block& x) { engine.ring().sub(x, a, b); });
  apart("sub broadcast", [&](Block& x) { engine.ring().sub(x, a, single); });
  in_place("sub in place", [&](Block& x) { engine.ring().sub(x, b, x); });
  apart("neg", [&](Block& x) { engine.ring().neg(x, a); });
  apart("mul", [&](Block& x) { engine.ring().mul(x, a, b); });
  apart("mul broadcast", [&](Block& x) { engine.ring().mul(x, a, single); });
  in_place("mul in place", [&](Block& x) { engine.ring().mul(x, x, x); });
  apart("mul_scalar", [&](Block& x) { engine.ring().mul_scalar(x, a, s); });
  in_place("mul_scalar_add", [&](Block& x) { engine.ring().mul_scalar_add(x, b, s); });
  apart("add_scalar", [&](Block& x) { engine.ring().add_scalar(x, a, s); });
  for (const std::size_t terms : {1, 2, 15, 16, 31, 61, 130}) {
    std::vector<ConstView> left, right;
    for (std::size_t k = 0; k < terms; ++k) {
      left.push_back(k % 2 ? a : b);
      right.push_back(k % 3 == 0 ? single : k % 3 == 1 ? c : d);
    }
    apart("inner_product", [&](Block& x) { engine.ring().inner_product(x, left, right); });
  }
  {
    Block s0 = blank(some), s1 = blank(some), t0 = fresh(some, batch), t1 = fresh(some, batch);
    const std::vector<ConstView> x0 = {a, b, c}, x1 = {b, d, a};
    const std::vector<u32> one = {2}, many(70, 1);
    const std::vector<ConstView> weight = {single}, weights(70, d);
    const std::vector<WeightedSum> sums = {{s0, s1, one, weight, false},
                                           {t0, t1, many, weights, true}};
    engine.rlwe().weighted_sums(x0, x1, sums);
    keep("weighted_sums 0", std::move(s0)), keep("weighted_sums 1", std::move(s1));
    keep("weighted_sums 2", std::move(t0)), keep("weighted_sums 3", std::move(t1));
  }
  {
    Block d0 = blank(some), d1 = blank(some), d2 = blank(some);
    engine.rlwe().tensor(d0, d1, d2, a, b, c, d);
    keep("tensor 0", std::move(d0)), keep("tensor 1", std::move(d1)),
        keep("tensor 2", std::move(d2));
  }
  {
    Block d0 = blank(some), d1 = blank(some), d2 = blank(some);
    const Block wide = fresh(all, batch);
    const Combination::Product products[] = {{a, b, wide, wide, true}, {c, c, c, c, false}};
    const Combination::Multiple multiples[] = {{wide, wide, s}, {b, d, s}};
    engine.rlwe().combine(d0, d1, d2, {products, multiples, s});
    keep("combine 0", std::move(d0)), keep("combine 1", std::move(d1)),
        keep("combine 2", std::move(d2));
  }
  for (const u64 g :
       {u64{1}, u64{5}, u64{25}, u64{2} * config.n - 1, below(rng, config.n) * 2 + 1}) {
    apart("automorphism_ntt", [&](Block& x) { engine.ring().automorphism_ntt(x, a, g); });
  }

  for (const std::vector<u32>& digits :
       {std::vector<u32>{5}, std::vector<u32>{2, 2, 1}, std::vector<u32>{1, 1, 1, 1, 1}}) {
    const std::size_t count = digits.size();
    Block key_block = fresh(all, 1, 2 * (count + 1));
    const KeyView key{key_block.data(), count + 1, all};
    std::vector<u32> ids(count);
    std::iota(ids.rbegin(), ids.rend(), u32{0});
    Block ext = blank(all, count);
    engine.rlwe().mod_up(ext, a, digits);
    for (const u64 g : {u64{1}, u64{5}, u64{2} * config.n - 1}) {
      Block acc0 = blank(all), acc1 = blank(all);
      engine.rlwe().key_product(acc0, acc1, ext, key, ids, g, false);
      engine.rlwe().key_product(acc0, acc1, ext, key, ids, g, true);
      keep("key_product 0", std::move(acc0)), keep("key_product 1", std::move(acc1));
    }
    {
      const PrimeList extended = {0, 2, 3, 5, 6, 7};
      const Block up = fresh(extended, batch, count);
      const std::vector<Rotated> operands = {{up, b, c, 5, key},
                                             {{}, b, c, 1, {}},
                                             {up, b, c, u64{2} * config.n - 1, key},
                                             {up, c, d, below(rng, config.n) * 2 + 1, key}};
      const Block weight = fresh(extended, 1), own = fresh(extended, batch);
      const std::vector<u32> one = {2}, many = {0, 1, 2, 3, 3, 0};
      const std::vector<ConstView> w = {weight}, ws = {own, weight, own, weight, own, own};
      Block s0 = blank(extended), s1 = blank(extended), t0 = own, t1 = own;
      const std::vector<WeightedSum> sums = {{s0, s1, one, w, false}, {t0, t1, many, ws, true}};
      engine.rlwe().rotated_sums(operands, ids, s, sums);
      keep("rotated_sums 0", std::move(s0)), keep("rotated_sums 1", std::move(s1));
      keep("rotated_sums 2", std::move(t0)), keep("rotated_sums 3", std::move(t1));
    }
    {
      const PrimeList extended = {0, 2, 3, 5, 6, 7};
      const Block x0 = fresh(extended, batch), x1 = fresh(extended, batch);
      const std::vector<Turned> terms = {{x0, x1, 5, key}, {x1, x0, u64{2} * config.n - 1, key}};
      Block acc0 = blank(extended), acc1 = blank(extended);
      engine.rlwe().outer_sum(acc0, acc1, terms, digits, ids, false);
      engine.rlwe().outer_sum(acc0, acc1, {terms.data(), 1}, digits, ids, true);
      keep("outer_sum 0", std::move(acc0)), keep("outer_sum 1", std::move(acc1));
    }
    keep("mod_up", std::move(ext));
    Block acc0 = blank(all), acc1 = blank(all);
    engine.rlwe().key_switch(acc0, acc1, a, digits, key, ids);
    const PrimeList extended = {0, 2, 3, 5, 6, 7};
    Block joined0 = blank(extended), joined1 = blank(extended);
    engine.rlwe().key_switch_add(joined0, joined1, a, digits, key, ids, {b, c, s});
    keep("key_switch_add 0", joined0), keep("key_switch_add 1", joined1);
    const Combination::Product product{a, b, c, d};
    engine.rlwe().combine_key_switch(joined0, joined1, {{&product, 1}}, s, digits, key, ids);
    keep("combine_key_switch 0", joined0), keep("combine_key_switch 1", joined1);
    Block turned0 = a, turned1 = a;
    engine.rlwe().rotate(turned0, turned1, joined0, joined1, b, c, 5, digits, key, ids);
    keep("rotate 0", turned0), keep("rotate 1", turned1);
    keep("key_switch 0", std::move(acc0)), keep("key_switch 1", std::move(acc1));
  }

  for (const PrimeList& to :
       {PrimeList{0, 2, 3, 5}, PrimeList{0}, PrimeList{1, 2, 3, 4}, PrimeList{7},
        PrimeList{0, 2, 3, 5, 6}, PrimeList{0, 1, 2, 3, 5, 6, 7}}) {
    Block x = blank(to);
    engine.rlwe().scale_down(x, a, nullptr);
    keep("scale_down", x);
    const Block addend = fresh(to, batch);
    const ConstView view = addend;
    engine.rlwe().scale_down(x, a, &view);
    keep("scale_down with addend", std::move(x));
    Block same_block = addend;
    const ConstView self = same_block;
    engine.rlwe().scale_down(same_block, a, &self);
    keep("scale_down onto its addend", std::move(same_block));
  }

  std::vector<std::int64_t> small(batch * config.n);
  std::vector<double> real(batch * config.n);
  for (std::size_t k = 0; k < small.size(); ++k) {
    small[k] = k == 0   ? INT64_MIN
               : k == 1 ? INT64_MAX
                        : static_cast<std::int64_t>(rng()) >> below(rng, 63);
    real[k] = std::ldexp(static_cast<double>(small[k]), static_cast<int>(below(rng, 930)));
  }
  apart("from_int64", [&](Block& x) { engine.ring().from_int64(x, small); });
  apart("from_double", [&](Block& x) { engine.ring().from_double(x, real); });
  std::vector<double> narrow(small.size());  // all within 64 bits, for which there is another path
  for (std::size_t k = 0; k < narrow.size(); ++k) narrow[k] = static_cast<double>(small[k] / 2);
  apart("from_double of small ones", [&](Block& x) { engine.ring().from_double(x, narrow); });
  std::vector<u64> integers(9 * batch * config.n);
  for (u64& word : integers) word = fill == Fill::max ? ~u64{0} : rng();
  apart("crt mod", [&](Block& x) { engine.ring().crt(x, integers, 9, CrtMethod::mod); });
  apart("crt mul", [&](Block& x) { engine.ring().crt(x, integers, 9, CrtMethod::mul); });
  for (const IcrtMethod method : {IcrtMethod::product_sum, IcrtMethod::garner}) {
    std::vector<u64> out(6 * batch * config.n);
    engine.ring().icrt(out, 6, a, method);
    // The integers are stored as a block, so that all outputs are blocks: 6 words are 6 or 12 rows
    // of residues.
    const std::size_t rows = 6 * 8 / word_bytes(config.word);
    Block x(config, range(0, 1), batch, rows);
    std::memcpy(x.view().data, out.data(), x.bytes());
    keep("icrt", std::move(x));
  }
  return outputs;
}

}  // namespace jali::backend::test
