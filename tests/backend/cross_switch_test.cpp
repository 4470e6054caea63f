// Compares cpu/ with the oracle: base conversion, key switching, and the sums that are computed
// together with it.
#include "cross.h"
#include "jali/base/error.h"

namespace jali::backend::test {
namespace {

TEST_P(Cross, RotatedSums) {
  const PrimeList level = {0, 1, 3, 4}, ext = {0, 1, 3, 4, 10, 11};
  const Digits digits = {2, 1, 1}, ids = {3, 0, 2};
  const Key first(config(), 4, rng_), second(config(), 4, rng_);
  std::vector<u64> s;
  for (const PrimeIndex p : level) s.push_back(below(rng_, config().primes[p]));
  for (const std::size_t batch : {1, 3}) {
    if (large() && batch == 3) continue;
    for (const Fill fill : {Fill::random, Fill::max}) {
      const Block c0 = block(level, batch, fill), c1 = block(level, batch, fill);
      const Block d0 = block(level, batch, fill), d1 = block(level, batch, fill);
      const Block up = block(ext, batch, fill, 3), other = block(ext, batch, fill, 3);
      const std::vector<Rotated> operands = {{up, c0, c1, 5, first.view()},
                                             {{}, c0, c1, 1, {}},
                                             {up, c0, c1, 2 * n() - 1, second.view()},
                                             {other, d0, d1, n() + 1, first.view()},
                                             {other, d0, d1, 25, second.view()}};
      std::vector<Block> b;
      for (std::size_t t = 0; t < 5; ++t) b.push_back(block(ext, t % 2 == 0 ? 1 : batch, fill));
      for (const std::size_t count : {1, 3, 20}) {
        if (large() && count > 3) continue;
        // The sums have different lengths and use some operands several times; every other sum
        // accumulates.
        std::vector<std::vector<u32>> which(count);
        std::vector<std::vector<ConstView>> weights(count);
        for (std::size_t g = 0; g < count; ++g) {
          const std::size_t terms = g == 1 ? 70 : g % 5 + 1;
          for (std::size_t t = 0; t < terms; ++t) {
            which[g].push_back(static_cast<u32>((t * 3 + g) % 5));
            weights[g].push_back(b[(t + g) % 5]);
          }
        }
        const Block before = block(ext, batch, fill);
        engines_.expect_same(
            describe("sums", count, "batch", batch, "fill", fill), [&](const Engine& engine) {
              std::vector<Block> out;
              for (std::size_t g = 0; g < 2 * count; ++g) {
                out.push_back(g % 4 < 2 ? Block(config(), ext, batch) : before);
              }
              std::vector<WeightedSum> sums;
              for (std::size_t g = 0; g < count; ++g) {
                sums.push_back({out[2 * g], out[2 * g + 1], which[g], weights[g], g % 2 == 1});
              }
              engine.rlwe().rotated_sums(operands, ids, s, sums);
              return out;
            });
      }
    }
  }
}

TEST_P(Cross, OuterSums) {
  const PrimeList level = {0, 1, 3, 4}, ext = {0, 1, 3, 4, 10, 11};
  const Digits digits = {2, 1, 1}, ids = {3, 0, 2};
  const Key first(config(), 4, rng_), second(config(), 4, rng_);
  for (const std::size_t batch : {1, 3}) {
    if (large() && batch == 3) continue;
    for (const Fill fill : {Fill::random, Fill::max}) {
      std::vector<Block> x;
      for (int k = 0; k < 4; ++k) x.push_back(block(ext, batch, fill));
      const std::vector<Turned> terms = {{x[0], x[1], 5, first.view()},
                                         {x[1], x[2], 2 * n() - 1, second.view()},
                                         {x[3], x[0], 1, first.view()}};
      const Block start = block(ext, batch, fill);
      for (const std::size_t count : {1, 3}) {
        for (const bool accumulate : {false, true}) {
          engines_.expect_same(
              describe("terms", count, "batch", batch, "fill", fill, "accumulate", accumulate),
              [&](const Engine& engine) {
                std::vector<Block> out(2, accumulate ? start : Block(config(), ext, batch));
                engine.rlwe().outer_sum(out[0], out[1], std::span(terms).first(count), digits, ids,
                                        accumulate);
                return out;
              });
        }
      }
    }
  }
}

TEST_P(Cross, ModUp) {
  struct Case {
    PrimeList x, ext;
    Digits digits;
    std::size_t batch;
  };
  std::vector<Case> cases = {{{0}, range(0, 3), {1}, 1},
                             {range(0, 4), range(0, 4), {2, 2}, 3},  // nothing to extend to
                             {{0, 1, 2, 4, 5, 8}, {0, 1, 2, 4, 5, 8, 10, 11}, {3, 1, 2}, 3}};
  if (!large()) {
    cases.push_back({range(0, 8), range(0, 12), {8}, 1});
    cases.push_back({range(0, 8), range(0, 12), {1, 1, 1, 1, 1, 1, 1, 1}, 1});
    cases.push_back({range(0, 8), range(0, 12), {4, 4}, 3});
    cases.push_back({range(0, 7), range(0, 9), {3, 3, 1}, 1});
    cases.push_back({range(5, 12), range(0, 12), {2, 2, 2, 1}, 1});  // the digits' primes are last
    cases.push_back({range(0, 3), range(0, 3), {3}, 1});  // a copy
  }
  for (const Case& c : cases) {
    for (const Fill fill : fills()) {
      const Block x = transformed(c.x, c.batch, fill);
      const Block raw = block(c.x, c.batch, fill);  // the filling is taken as NTT values
      engines_.expect_same(
          describe("x", c.x, "ext", c.ext, "digits", c.digits, "batch", c.batch, "fill", fill),
          [&](const Engine& engine) {
            const Block poison(config(), c.ext, c.batch, c.digits.size());
            std::vector<Block> out = {poison, poison};
            engine.rlwe().mod_up(out[0], x, c.digits);
            engine.rlwe().mod_up(out[1], raw, c.digits);
            return out;
          });
    }
  }
}

TEST_P(Cross, KeyProductAndKeySwitch) {
  struct Case {
    PrimeList x, ext;
    Digits digits, ids;
  };
  std::vector<Case> cases = {{range(0, 5), {0, 1, 2, 3, 4, 10, 11}, {2, 2, 1}, {0, 1, 3}}};
  if (!large()) {
    cases.push_back({{0}, {0, 11}, {1}, {2}});
    cases.push_back({range(0, 8), range(0, 9), {1, 1, 1, 1, 1, 1, 1, 1}, {7, 6, 5, 4, 3, 2, 1, 0}});
    cases.push_back({{0, 2, 3, 7}, {0, 2, 3, 7, 8, 9, 10, 11}, {4}, {1}});
  }
  for (const Case& c : cases) {
    const Key key(config(), 8, rng_);
    for (const std::size_t batch : {1, 3}) {
      if (n() == 8192 && batch == 3) continue;
      for (const Fill fill : {Fill::random, Fill::max}) {
        const Block x = transformed(c.x, batch, fill);
        const Block ext = block(c.ext, batch, fill, c.digits.size());
        const Block start = block(c.ext, batch, fill), poison(config(), c.ext, batch);
        const std::string shape =
            describe("x", c.x, "ext", c.ext, "digits", c.digits, "batch", batch, "fill", fill);
        for (const u64 g : {u64{1}, u64{5}, 2 * n() - 1}) {
          for (const bool accumulate : {false, true}) {
            engines_.expect_same(describe("key_product g", g, "accumulate", accumulate, shape),
                                 [&](const Engine& engine) {
                                   std::vector<Block> out = {accumulate ? start : poison,
                                                             accumulate ? start : poison};
                                   engine.rlwe().key_product(out[0], out[1], ext, key.view(), c.ids,
                                                             g, accumulate);
                                   return out;
                                 });
          }
        }
        engines_.expect_same("key_switch " + shape, [&](const Engine& engine) {
          std::vector<Block> out = {poison, poison};
          engine.rlwe().key_switch(out[0], out[1], x, c.digits, key.view(), c.ids);
          return out;
        });
        if (!std::ranges::equal(c.x, std::span(c.ext).first(c.x.size()))) continue;
        const Block c0 = block(c.x, batch, fill), c1 = block(c.x, batch, fill);
        const Block e0 = block(c.x, batch, fill), e1 = block(c.x, batch, fill);
        std::vector<u64> s;
        for (const PrimeIndex p : c.x) s.push_back(config().primes[p] - 1 - p);
        engines_.expect_same("key_switch_add " + shape, [&](const Engine& engine) {
          std::vector<Block> out(2, poison);
          engine.rlwe().key_switch_add(out[0], out[1], x, c.digits, key.view(), c.ids, {c0, c1, s});
          return out;
        });
        // The polynomial to switch is a sum of one or two products, with and without multiples and
        // a constant.
        PrimeList wide = c.x;
        if (wide.back() + 1u < kPrimes) wide.push_back(static_cast<PrimeIndex>(wide.back() + 1));
        const Block w0 = block(wide, batch, fill), w1 = block(wide, batch, fill);
        const Combination::Product products[] = {{c0, c1, w0, w1, true}, {w0, w1, w0, w1, false}};
        const Combination::Multiple multiples[] = {{w1, w0, s}, {e0, e1, s}};
        engines_.expect_same("combine_key_switch " + shape, [&](const Engine& engine) {
          std::vector<Block> out(8, poison);
          const auto run = [&](std::size_t i, std::size_t p, std::size_t m, bool constant) {
            engine.rlwe().combine_key_switch(
                out[i], out[i + 1],
                {std::span(products).first(p), std::span(multiples).first(m),
                 std::span<const u64>(s).first(constant ? s.size() : 0)},
                s, c.digits, key.view(), c.ids);
          };
          run(0, 1, 0, true), run(2, 1, 1, true), run(4, 2, 2, false), run(6, 1, 0, false);
          return out;
        });
        engines_.expect_same("rotate " + shape, [&](const Engine& engine) {
          std::vector<Block> out = {c0, c0, poison, poison};
          engine.rlwe().rotate(out[0], out[1], out[2], out[3], c0, c1, 2 * n() - 1, c.digits,
                               key.view(), c.ids);
          return out;
        });
      }
    }
  }
}

// Keys that are cut to the primes in use, or to some more, give the same results as the whole key.
TEST_P(Cross, CutKeys) {
  const PrimeList x_primes = {0, 1, 3}, ext_primes = {0, 1, 3, 8, 11};
  const Digits digits = {2, 1}, ids = {2, 0};
  const Key whole(config(), 3, rng_);
  const Key cut(config(), whole, ext_primes), more(config(), whole, {0, 1, 2, 3, 5, 8, 10, 11});
  const Block x = transformed(x_primes, 2, Fill::random);
  const Block c0 = block(x_primes, 2, Fill::random), c1 = block(x_primes, 2, Fill::random);
  const Block ext = block(ext_primes, 2, Fill::random, digits.size());
  std::vector<u64> s;
  for (const PrimeIndex p : x_primes) s.push_back(config().primes[p] - 1 - p);
  const auto all_of = [&](const Engine& engine, const Key& key) {
    std::vector<Block> out(8, Block(config(), ext_primes, 2));
    for (int i = 0; i < 2; ++i) out.emplace_back(config(), x_primes, 2);
    const KeyView view = key.view();
    engine.rlwe().key_product(out[0], out[1], ext, view, ids, 5, false);
    engine.rlwe().key_switch(out[2], out[3], x, digits, view, ids);
    engine.rlwe().key_switch_add(out[4], out[5], x, digits, view, ids, {c0, c1, s});
    const Combination::Product product{c0, c1, c1, x};
    engine.rlwe().combine_key_switch(out[6], out[7], {{&product, 1}}, s, digits, view, ids);
    Block acc0 = out[0], acc1 = out[0];
    engine.rlwe().rotate(out[8], out[9], acc0, acc1, c0, c1, 5, digits, view, ids);
    return out;
  };
  const std::vector<Block> want = all_of(engines_.ref(), whole);
  for (const Key* key : {&whole, &cut, &more}) {
    engines_.expect_same("cut keys", [&](const Engine& engine) {
      std::vector<Block> have = all_of(engine, *key);
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same(have[i], want[i])) << i;
      return have;
    });
  }
}

TEST_P(Cross, ScaleDown) {
  struct Case {
    PrimeList from, to;
    std::size_t batch;
  };
  std::vector<Case> cases = {{range(0, 8), range(0, 7), 1},  // rescale
                             {{0, 1, 2, 5, 9, 10, 11}, {0, 1, 2, 5}, 3},  // mod down
                             {{0, 2, 3, 5, 9}, {0, 1, 2, 4, 6}, 3}};  // drops 3, adds 3, apart
  if (!large()) {
    cases.push_back({range(0, 12), range(0, 4), 1});
    cases.push_back({range(0, 9), range(0, 1), 3});
    cases.push_back({{0, 1}, {2}, 1});  // nothing kept
    cases.push_back({{3}, {0, 1, 2, 4, 5, 6, 7}, 1});
    cases.push_back({range(2, 5), range(0, 6), 1});  // only adds: out = x A
    cases.push_back({range(2, 5), range(2, 5), 3});  // neither: out = x
    cases.push_back({range(4, 10), range(0, 7), 1});
    cases.push_back({{0, 1, 2, 3, 6}, {0, 1, 2, 4, 5}, 1});
  }
  for (const Case& c : cases) {
    for (const Fill fill : fills()) {
      const Block x = transformed(c.from, c.batch, fill);
      const Block raw = block(c.from, c.batch, fill), addend = block(c.to, c.batch, fill);
      engines_.expect_same(describe("from", c.from, "to", c.to, "batch", c.batch, "fill", fill),
                           [&](const Engine& engine) {
                             const Block poison(config(), c.to, c.batch);
                             std::vector<Block> out = {poison, poison, poison, addend};
                             const ConstView more = addend, own = out[3];
                             engine.rlwe().scale_down(out[0], x, nullptr);
                             engine.rlwe().scale_down(out[1], raw, nullptr);
                             engine.rlwe().scale_down(out[2], x, &more);
                             engine.rlwe().scale_down(out[3], x, &own);  // the addend is the output
                             return out;
                           });
    }
  }
}

}  // namespace
}  // namespace jali::backend::test
