// cpu/ against the oracle, bit for bit: every operation, word, instruction set and thread count, on
// poisoned outputs.
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "engines.h"
#include "jali/base/error.h"
#include "jali/random/prng.h"

namespace jali::backend::test {
namespace {

using Digits = std::vector<u32>;

constexpr std::size_t kPrimes = 12;
const std::vector<std::size_t> kSizes = kSanitized
                                            ? std::vector<std::size_t>{1024, 4096}
                                            : std::vector<std::size_t>{1024, 2048, 4096, 8192};

/// Limbs that are not neighbours, as a basis in the middle of a chain has them.
PrimeList scattered(std::size_t count) {
  PrimeList p;
  for (std::size_t i = 0; i < kPrimes && p.size() < count; ++i) {
    if (i % 4 != 1 || kPrimes - i <= count - p.size()) p.push_back(static_cast<PrimeIndex>(i));
  }
  return p;
}

class Cross : public testing::TestWithParam<std::tuple<Word, std::size_t>> {
 protected:
  Cross() : rng_(seed_) {}

  Word word() const { return std::get<0>(GetParam()); }
  std::size_t n() const { return std::get<1>(GetParam()); }
  /// The oracle is slow: large rings get the shapes that matter most.
  bool large() const { return n() > 1024 || kSanitized; }
  const Config& config() const { return engines_.config(); }

  Block block(PrimeList primes, std::size_t batch, Fill fill = Fill::random,
              std::size_t blocks = 1) {
    Block b(config(), std::move(primes), batch, blocks);
    b.fill(fill, rng_);
    return b;
  }
  /// Filled in coefficient form, given in NTT form.
  Block transformed(PrimeList primes, std::size_t batch, Fill fill) {
    Block b = block(std::move(primes), batch, fill);
    engines_.ref().ntt(b);
    return b;
  }
  std::vector<std::pair<std::size_t, std::size_t>> shapes() const {  // (limbs, batch)
    if (large()) return {{2, 1}, {8, 3}};
    return {{1, 1}, {2, 3}, {3, 1}, {5, 3}, {8, 1}, {8, 3}};
  }
  std::vector<Fill> fills() const {
    if (large()) return {Fill::random, Fill::max};
    return {std::begin(kFills), std::end(kFills)};
  }

  const u64 seed_ = test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_;
  Engines engines_{{word(), n(), primes_for(word(), n(), kPrimes), 1, ""}};
};

INSTANTIATE_TEST_SUITE_P(Rings, Cross,
                         testing::Combine(testing::ValuesIn(kWords), testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           return std::string(word_name(std::get<0>(info.param))) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(Cross, Roots) {
  for (const auto& engine : engines_.cpu()) {
    for (PrimeIndex p = 0; p < kPrimes; ++p) EXPECT_EQ(engine->root(p), engines_.ref().root(p));
  }
}

TEST_P(Cross, Transforms) {
  for (const auto& shape : shapes()) {
    const std::size_t limbs = shape.first, batch = shape.second;
    for (const Fill fill : fills()) {
      const Block x = block(scattered(limbs), batch, fill);
      engines_.expect_same(describe("limbs", limbs, "batch", batch, "fill", fill),
                           [&](const Ops& ops) {
                             std::vector<Block> out = {x, x};
                             ops.ntt(out[0]);
                             ops.intt(out[1]);
                             return out;
                           });
    }
  }
}

TEST_P(Cross, ElementWise) {
  using Binary = void (Ops::*)(View, ConstView, ConstView) const;
  using Scalar = void (Ops::*)(View, ConstView, std::span<const u64>) const;
  const std::pair<const char*, Binary> binaries[] = {
      {"add", &Ops::add}, {"sub", &Ops::sub}, {"mul", &Ops::mul}, {"mul_add", &Ops::mul_add}};
  const std::pair<const char*, Scalar> scalars[] = {{"mul_scalar", &Ops::mul_scalar},
                                                    {"mul_scalar_add", &Ops::mul_scalar_add},
                                                    {"add_scalar", &Ops::add_scalar}};
  for (const auto& shape : shapes()) {
    const std::size_t limbs = shape.first, batch = shape.second;
    for (const Fill fill : fills()) {
      const PrimeList primes = scattered(limbs);
      const Block a = block(primes, batch, fill), b = block(primes, batch, fill);
      const Block one = block(primes, 1, fill), start = block(primes, batch, fill);
      const Block poison(config(), primes, batch);
      std::vector<u64> s;
      for (const PrimeIndex p : primes) {
        const u64 q = config().primes[p];
        s.push_back(fill == Fill::zero ? 0 : fill == Fill::max ? q - 1 : below(rng_, q));
      }
      const std::string shape = describe("limbs", limbs, "batch", batch, "fill", fill);
      for (const auto& [name, op] : binaries) {
        const bool accumulates = op == &Ops::mul_add;
        engines_.expect_same(name + (" " + shape), [&, op = op](const Ops& ops) {
          // Apart, broadcast, out == a, out == b, all three the same, broadcast onto a.
          const Block& from = accumulates ? start : poison;
          std::vector<Block> out = {from, from, a, b, a, a};
          (ops.*op)(out[0], a, b);
          (ops.*op)(out[1], a, one);
          (ops.*op)(out[2], out[2], b);
          (ops.*op)(out[3], a, out[3]);
          (ops.*op)(out[4], out[4], out[4]);
          (ops.*op)(out[5], out[5], one);
          return out;
        });
      }
      for (const auto& [name, op] : scalars) {
        const bool accumulates = op == &Ops::mul_scalar_add;
        engines_.expect_same(name + (" " + shape), [&, op = op](const Ops& ops) {
          std::vector<Block> out = {accumulates ? start : poison, a};
          (ops.*op)(out[0], a, s);
          (ops.*op)(out[1], out[1], s);
          return out;
        });
      }
      engines_.expect_same("neg " + shape, [&](const Ops& ops) {
        std::vector<Block> out = {poison, a};
        ops.neg(out[0], a);
        ops.neg(out[1], out[1]);
        return out;
      });
      const Block c = block(primes, batch, fill);
      engines_.expect_same("tensor " + shape, [&](const Ops& ops) {
        std::vector<Block> out = {poison, poison, poison, poison, poison, poison};
        ops.tensor(out[0], out[1], out[2], a, b, c, start);
        ops.tensor(out[3], out[4], out[5], a, b, a, b);  // a square: inputs may coincide
        return out;
      });
    }
  }
}

TEST_P(Cross, InnerProduct) {
  for (const std::size_t terms : {1, 2, 3, 7, 16}) {
    if (large() && terms > 3) continue;
    for (const std::size_t batch : {1, 3}) {
      for (const Fill fill : {Fill::random, Fill::max}) {
        const PrimeList primes = scattered(4);
        std::vector<Block> a, b;
        for (std::size_t t = 0; t < terms; ++t) {
          a.push_back(block(primes, batch, fill));
          b.push_back(block(primes, t % 2 == 0 ? 1 : batch, fill));
        }
        const std::vector<ConstView> as(a.begin(), a.end()), bs(b.begin(), b.end());
        engines_.expect_same(describe("terms", terms, "batch", batch, "fill", fill),
                             [&](const Ops& ops) {
                               std::vector<Block> out = {Block(config(), primes, batch)};
                               ops.inner_product(out[0], as, bs);
                               return out;
                             });
      }
    }
  }
}

TEST_P(Cross, WeightedSums) {
  for (const std::size_t terms : {1, 3, 16}) {
    if (large() && terms > 3) continue;
    for (const std::size_t count : {1, 4}) {
      for (const std::size_t batch : {1, 3}) {
        for (const Fill fill : {Fill::random, Fill::max}) {
          const PrimeList primes = scattered(3);
          std::vector<Block> a0, a1, b;
          for (std::size_t t = 0; t < terms; ++t) {
            a0.push_back(block(primes, batch, fill));
            a1.push_back(block(primes, batch, fill));
            b.push_back(block(primes, t % 2 == 0 ? 1 : batch, fill));
          }
          const std::vector<ConstView> x0(a0.begin(), a0.end()), x1(a1.begin(), a1.end());
          // Sums of different lengths over different operands; every other one accumulates.
          std::vector<std::vector<u32>> operands(count);
          std::vector<std::vector<ConstView>> weights(count);
          for (std::size_t s = 0; s < count; ++s) {
            for (std::size_t t = 0; t < terms + s * 20; ++t) {
              operands[s].push_back(static_cast<u32>((t * 7 + s) % terms));
              weights[s].push_back(b[(t + s) % terms]);
            }
          }
          const Block before = block(primes, batch, fill);
          engines_.expect_same(
              describe("terms", terms, "sums", count, "batch", batch, "fill", fill),
              [&](const Ops& ops) {
                std::vector<Block> out;
                for (std::size_t s = 0; s < 2 * count; ++s) {
                  out.push_back(s % 4 < 2 ? Block(config(), primes, batch) : before);
                }
                std::vector<WeightedSum> sums;
                for (std::size_t s = 0; s < count; ++s) {
                  sums.push_back({out[2 * s], out[2 * s + 1], operands[s], weights[s], s % 2 == 1});
                }
                ops.weighted_sums(x0, x1, sums);
                return out;
              });
        }
      }
    }
  }
}

TEST_P(Cross, Combinations) {
  struct Case {
    std::size_t products, multiples;
    bool constant;
  };
  for (const Case& c : {Case{1, 0, false}, Case{0, 1, true}, Case{1, 1, true}, Case{3, 2, true},
                        Case{0, 20, false}, Case{9, 17, true}}) {
    if (large() && c.products > 1) continue;
    for (const std::size_t batch : {1, 3}) {
      for (const Fill fill : fills()) {
        // Operands have the sum's primes, or more around them.
        const PrimeList primes = scattered(3), more = range(0, kPrimes);
        std::vector<Block> pool;
        for (int i = 0; i < 5; ++i) {
          pool.push_back(block(primes, batch, fill));
          pool.push_back(block(more, batch, fill));
        }
        const auto operand = [&](std::size_t i) -> const Block& { return pool[i % pool.size()]; };
        std::vector<std::vector<u64>> s;
        for (std::size_t k = 0; k <= c.multiples; ++k) {
          s.emplace_back();
          for (const PrimeIndex p : primes) {
            const u64 q = config().primes[p];
            s.back().push_back(fill == Fill::max ? q - 1 : below(rng_, q));
          }
        }
        std::vector<Combination::Product> products;
        std::vector<Combination::Multiple> multiples;
        for (std::size_t j = 0; j < c.products; ++j) {
          const bool wide = j % 3 == 1, square = j == 2;
          const std::size_t a = 2 * j + wide, b = square ? a : a + 3;
          products.push_back({operand(a), operand(a + 2), operand(b), operand(b + 2), j % 2 == 0});
        }
        for (std::size_t k = 0; k < c.multiples; ++k) {
          multiples.push_back({operand(k), operand(k + 4), s[k + 1]});
        }
        const Combination sum{products, multiples,
                              c.constant ? std::span<const u64>(s[0]) : std::span<const u64>()};
        engines_.expect_same(
            describe("products", c.products, "multiples", c.multiples, "batch", batch, "fill",
                     fill),
            [&](const Ops& ops) {
              std::vector<Block> out(c.products > 0 ? 3 : 2, Block(config(), primes, batch));
              ops.combine(out[0], out[1], c.products > 0 ? View(out[2]) : View{}, sum);
              return out;
            });
      }
    }
  }
}

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
        // Sums of different lengths, operands several times; every other one accumulates.
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
            describe("sums", count, "batch", batch, "fill", fill), [&](const Ops& ops) {
              std::vector<Block> out;
              for (std::size_t g = 0; g < 2 * count; ++g) {
                out.push_back(g % 4 < 2 ? Block(config(), ext, batch) : before);
              }
              std::vector<WeightedSum> sums;
              for (std::size_t g = 0; g < count; ++g) {
                sums.push_back({out[2 * g], out[2 * g + 1], which[g], weights[g], g % 2 == 1});
              }
              ops.rotated_sums(operands, ids, s, sums);
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
              [&](const Ops& ops) {
                std::vector<Block> out(2, accumulate ? start : Block(config(), ext, batch));
                ops.outer_sum(out[0], out[1], std::span(terms).first(count), digits, ids,
                              accumulate);
                return out;
              });
        }
      }
    }
  }
}

TEST_P(Cross, Automorphisms) {
  const u64 order = 2 * n();
  for (const u64 g : {u64{1}, u64{3}, u64{5}, u64{25}, n() - 1, n() + 1, order - 1, order - 5,
                      below(rng_, n()) * 2 + 1}) {
    for (const auto& shape : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 3}}) {
      const std::size_t limbs = shape.first, batch = shape.second;
      const Block x = block(scattered(limbs), batch, g == 5 ? Fill::zero : Fill::random);
      engines_.expect_same(describe("g", g, "limbs", limbs, "batch", batch), [&](const Ops& ops) {
        const Block poison(config(), x.primes(), batch);
        std::vector<Block> out = {poison, poison};
        ops.automorphism_ntt(out[0], x, g);
        ops.automorphism_coeff(out[1], x, g);
        return out;
      });
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
    cases.push_back({range(5, 12), range(0, 12), {2, 2, 2, 1}, 1});  // own primes are the last
    cases.push_back({range(0, 3), range(0, 3), {3}, 1});  // a copy
  }
  for (const Case& c : cases) {
    for (const Fill fill : fills()) {
      const Block x = transformed(c.x, c.batch, fill);
      const Block raw = block(c.x, c.batch, fill);  // the filling as values
      engines_.expect_same(
          describe("x", c.x, "ext", c.ext, "digits", c.digits, "batch", c.batch, "fill", fill),
          [&](const Ops& ops) {
            const Block poison(config(), c.ext, c.batch, c.digits.size());
            std::vector<Block> out = {poison, poison};
            ops.mod_up(out[0], x, c.digits);
            ops.mod_up(out[1], raw, c.digits);
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
            engines_.expect_same(
                describe("key_product g", g, "accumulate", accumulate, shape), [&](const Ops& ops) {
                  std::vector<Block> out = {accumulate ? start : poison,
                                            accumulate ? start : poison};
                  ops.key_product(out[0], out[1], ext, key.view(), c.ids, g, accumulate);
                  return out;
                });
          }
        }
        engines_.expect_same("key_switch " + shape, [&](const Ops& ops) {
          std::vector<Block> out = {poison, poison};
          ops.key_switch(out[0], out[1], x, c.digits, key.view(), c.ids);
          return out;
        });
        if (!std::ranges::equal(c.x, std::span(c.ext).first(c.x.size()))) continue;
        const Block c0 = block(c.x, batch, fill), c1 = block(c.x, batch, fill);
        const Block e0 = block(c.x, batch, fill), e1 = block(c.x, batch, fill);
        std::vector<u64> s;
        for (const PrimeIndex p : c.x) s.push_back(config().primes[p] - 1 - p);
        engines_.expect_same(
            "key_switch_joined and tensor_key_switch " + shape, [&](const Ops& ops) {
              std::vector<Block> out(4, poison);
              ops.key_switch_joined(out[0], out[1], x, c.digits, key.view(), c.ids, {c0, c1, s});
              ops.tensor_key_switch(out[2], out[3], c0, c1, e0, e1, s, c.digits, key.view(), c.ids);
              return out;
            });
        // Joined where it is made, with and without a multiple, and through memory.
        PrimeList wide = c.x;
        if (wide.back() + 1u < kPrimes) wide.push_back(static_cast<PrimeIndex>(wide.back() + 1));
        const Block w0 = block(wide, batch, fill), w1 = block(wide, batch, fill);
        const Combination::Product products[] = {{c0, c1, w0, w1, true}, {w0, w1, w0, w1, false}};
        const Combination::Multiple multiples[] = {{w1, w0, s}, {e0, e1, s}};
        engines_.expect_same("combine_key_switch " + shape, [&](const Ops& ops) {
          std::vector<Block> out(6, poison);
          const auto run = [&](std::size_t i, std::size_t p, std::size_t m, bool constant) {
            ops.combine_key_switch(out[i], out[i + 1],
                                   {std::span(products).first(p), std::span(multiples).first(m),
                                    std::span<const u64>(s).first(constant ? s.size() : 0)},
                                   s, c.digits, key.view(), c.ids);
          };
          run(0, 1, 0, true), run(2, 1, 1, true), run(4, 2, 2, false);
          return out;
        });
        engines_.expect_same("rotate " + shape, [&](const Ops& ops) {
          std::vector<Block> out = {c0, c0, poison, poison};
          ops.rotate(out[0], out[1], out[2], out[3], c0, c1, 2 * n() - 1, c.digits, key.view(),
                     c.ids);
          return out;
        });
      }
    }
  }
}

// Keys cut to the primes that are used, and to some more, give what the whole key gives.
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
  const auto all_of = [&](const Ops& ops, const Key& key) {
    std::vector<Block> out(8, Block(config(), ext_primes, 2));
    for (int i = 0; i < 2; ++i) out.emplace_back(config(), x_primes, 2);
    const KeyView view = key.view();
    ops.key_product(out[0], out[1], ext, view, ids, 5, false);
    ops.key_switch(out[2], out[3], x, digits, view, ids);
    ops.key_switch_joined(out[4], out[5], x, digits, view, ids, {c0, c1, s});
    ops.tensor_key_switch(out[6], out[7], c0, c1, c1, x, s, digits, view, ids);
    Block acc0 = out[0], acc1 = out[0];
    ops.rotate(out[8], out[9], acc0, acc1, c0, c1, 5, digits, view, ids);
    return out;
  };
  const std::vector<Block> want = all_of(engines_.ref(), whole);
  for (const Key* key : {&whole, &cut, &more}) {
    engines_.expect_same("cut keys", [&](const Ops& ops) {
      std::vector<Block> have = all_of(ops, *key);
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
                           [&](const Ops& ops) {
                             const Block poison(config(), c.to, c.batch);
                             std::vector<Block> out = {poison, poison, poison, addend};
                             const ConstView more = addend, own = out[3];
                             ops.scale_down(out[0], x, nullptr);
                             ops.scale_down(out[1], raw, nullptr);
                             ops.scale_down(out[2], x, &more);
                             ops.scale_down(out[3], x, &own);  // the addend is the output
                             return out;
                           });
    }
  }
}

TEST_P(Cross, FromIntegers) {
  for (const auto& shape : shapes()) {
    const std::size_t limbs = shape.first, batch = shape.second;
    const PrimeList primes = scattered(limbs);
    std::vector<std::int64_t> c(batch * n());
    std::vector<double> d(batch * n());
    for (std::size_t i = 0; i < c.size(); ++i) {
      c[i] = static_cast<std::int64_t>(rng_()) >> below(rng_, 64);
      d[i] = std::trunc(std::ldexp(static_cast<double>(static_cast<std::int64_t>(rng_())),
                                   static_cast<int>(below(rng_, 1000)) - 63));
    }
    const std::int64_t corners[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, 0, -1, 1};
    std::copy(std::begin(corners), std::end(corners), c.begin());
    const double reals[] = {0x1.fffffffffffffp999,
                            -0x1.fffffffffffffp999,
                            0.0,
                            -0.0,
                            0x1p53,
                            -0x1p63,
                            0x1p64,
                            0x1p61 - 512,
                            -1.0,
                            0x1.fffffffffffffp52};
    std::copy(std::begin(reals), std::end(reals), d.begin());
    const u64 q = config().primes[primes.back()];  // and multiples of a prime, and their neighbours
    for (std::size_t i = 0; i < 8; ++i) {
      c[i + 8] = static_cast<std::int64_t>((i / 2 + 1) * q) * (i % 2 == 0 ? 1 : -1);
      c[i + 16] = c[i + 8] - 1;
      d[i + 16] = static_cast<double>(q >> 8) * (i % 2 == 0 ? 256 : -256);
    }
    engines_.expect_same(describe("limbs", limbs, "batch", batch), [&](const Ops& ops) {
      const Block poison(config(), primes, batch);
      std::vector<Block> out = {poison, poison};
      ops.from_int64(out[0], c);
      ops.from_double(out[1], d);
      return out;
    });
  }
}

TEST_P(Cross, Crt) {
  for (const auto& shape : shapes()) {
    const std::size_t limbs = shape.first, batch = shape.second;
    const PrimeList primes = scattered(limbs);
    const std::size_t need = product(config(), primes).words();
    for (const std::size_t words : {std::size_t{1}, need, need + 1, std::size_t{17}}) {
      for (const bool ones : {false, true}) {
        std::vector<u64> x(words * batch * n());
        for (u64& w : x) w = ones ? ~u64{0} : rng_();
        engines_.expect_same(describe("limbs", limbs, "batch", batch, "words", words),
                             [&](const Ops& ops) {
                               const Block poison(config(), primes, batch);
                               std::vector<Block> out = {poison, poison};
                               ops.crt(out[0], x, words, CrtMethod::mod);
                               ops.crt(out[1], x, words, CrtMethod::mul);
                               return out;
                             });
      }
    }
    for (const Fill fill : fills()) {
      const Block x = block(primes, batch, fill);
      const auto integers_of = [&](const Ops& ops, IcrtMethod method, std::size_t words) {
        std::vector<u64> out(words * batch * n(), 0xABABABABABABABAB);
        ops.icrt(out, words, x, method);
        return out;
      };
      for (const std::size_t words : {need, need + 2}) {
        const auto want = integers_of(engines_.ref(), IcrtMethod::product_sum, words);
        for (const auto& engine : engines_.cpu()) {
          for (const IcrtMethod method : {IcrtMethod::product_sum, IcrtMethod::garner}) {
            EXPECT_TRUE(integers_of(*engine, method, words) == want)
                << engine_name(*engine) << " method " << static_cast<int>(method) << " limbs "
                << limbs << " batch " << batch << " words " << words << " fill "
                << static_cast<int>(fill);
          }
        }
      }
    }
  }
}

TEST_P(Cross, UniformResiduesFromASeed) {
  const PrimeList primes = {1, 2, 7};
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(rng_());
  const u32 index = static_cast<u32>(rng_());
  engines_.expect_same("sample_uniform", [&](const Ops& ops) {
    std::vector<Block> out = {Block(config(), primes, 3)};
    ops.sample_uniform(out[0], seed, index);
    return out;
  });
  Block x(config(), primes, 3);
  engines_.cpu()[0]->sample_uniform(x, seed, index);
  for (std::size_t i = 0; i < primes.size(); ++i) {
    for (std::size_t b = 0; b < 3; ++b) {
      random::Prng prng(seed, (u64{index} + b) << 16 | primes[i]);
      std::vector<u64> row(n());
      std::vector<u32> row32(n());
      if (word() == Word::w32) {
        random::sample_uniform(prng, x.prime(i), row32);
        std::copy(row32.begin(), row32.end(), row.begin());
      } else {
        random::sample_uniform(prng, x.prime(i), row);
      }
      for (std::size_t k = 0; k < n(); ++k) ASSERT_EQ(x.at(i, b, k), row[k]);
    }
  }
}

// --- many terms: where lazy sums would overflow ---------------------------------------------------

class CrossLong : public testing::TestWithParam<Word> {
 protected:
  static constexpr std::size_t kN = 1024;
  CrossLong() : rng_(seed_) {}

  const u64 seed_ = test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_;
};
INSTANTIATE_TEST_SUITE_P(Words, CrossLong, testing::ValuesIn(kWords),
                         [](const auto& info) { return std::string(word_name(info.param)); });

TEST_P(CrossLong, SumsOfManyProducts) {
  const Engines engines({GetParam(), kN, primes_for(GetParam(), kN, 3), 1, ""});
  const PrimeList primes = {0, 2};
  for (const Fill fill : {Fill::max, Fill::random}) {
    for (const std::size_t terms : {15, 16, 17, 33, 64, 65, 130}) {
      Block a(engines.config(), primes, 1), b(engines.config(), primes, 1);
      a.fill(fill, rng_);
      b.fill(fill, rng_);
      const std::vector<ConstView> as(terms, a), bs(terms, b);
      engines.expect_same(describe("inner_product terms", terms, "fill", fill),
                          [&](const Ops& ops) {
                            std::vector<Block> out = {Block(engines.config(), primes, 1)};
                            ops.inner_product(out[0], as, bs);
                            return out;
                          });
      Block key(engines.config(), range(0, 3), 1, 4), ext(engines.config(), primes, 1, terms);
      key.fill(fill, rng_);
      ext.fill(fill, rng_);
      Digits ids(terms);
      for (std::size_t t = 0; t < terms; ++t) ids[t] = t % 2;
      for (const u64 g : {u64{1}, u64{5}}) {
        engines.expect_same(
            describe("key_product terms", terms, "fill", fill, "g", g), [&](const Ops& ops) {
              std::vector<Block> out = {a, b};
              ops.key_product(out[0], out[1], ext, {key.data(), 2, key.primes()}, ids, g, true);
              return out;
            });
      }
    }
  }
}

TEST_P(CrossLong, WideBases) {
  // The largest primes of the word: every partial sum of a lift is as large as it can be.
  constexpr std::size_t kWide = 48;
  const Engines engines(
      {GetParam(), kN, primes_below(u64{1} << word_prime_bits(GetParam()), kN, kWide), 1, ""});
  const Config& config = engines.config();
  for (const Fill fill : {Fill::max, Fill::random, Fill::half}) {
    if (kSanitized && fill != Fill::max) continue;
    Block x(config, range(0, 40), 1);
    x.fill(fill, rng_);
    Block values = x;
    engines.ref().ntt(values);
    for (const Digits& digits : {Digits{40}, Digits{17, 20, 3}}) {
      engines.expect_same(describe("mod_up", digits, "fill", fill), [&](const Ops& ops) {
        std::vector<Block> out = {Block(config, range(0, kWide), 1, digits.size())};
        ops.mod_up(out[0], values, digits);
        return out;
      });
    }
    engines.expect_same(describe("scale_down fill", fill), [&](const Ops& ops) {
      std::vector<Block> out = {Block(config, {0, 1, 45}, 1), Block(config, range(0, 20), 1)};
      ops.scale_down(out[0], values, nullptr);
      ops.scale_down(out[1], values, nullptr);
      return out;
    });
    const std::size_t words = product(config, x.primes()).words();
    const std::vector<Natural> want = integers(engines.ref(), x);
    for (const auto& engine : engines.cpu()) {
      EXPECT_TRUE(integers(*engine, x, IcrtMethod::product_sum) == want) << engine_name(*engine);
      EXPECT_TRUE(integers(*engine, x, IcrtMethod::garner) == want) << engine_name(*engine);
    }
    std::vector<u64> flat(words * kN);
    for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = want[i % kN].word(i / kN);
    engines.expect_same(describe("crt fill", fill), [&](const Ops& ops) {
      std::vector<Block> out = {Block(config, x.primes(), 1), Block(config, x.primes(), 1)};
      ops.crt(out[0], flat, words, CrtMethod::mod);
      ops.crt(out[1], flat, words, CrtMethod::mul);
      return out;
    });
  }
}

TEST_P(CrossLong, LiftsNearHalf) {
  // Within rounding of D/2 the double sum of ops.h decides the side: each rounding in it counts.
  const Engines engines({GetParam(), kN, primes_for(GetParam(), kN, 10), 1, ""});
  const Config& config = engines.config();
  for (const std::size_t limbs : {1, 2, 3, 5, 8}) {
    const PrimeList digit = range(0, limbs);
    const Natural d = product(config, digit);
    Natural half = d;
    half.divide(2);
    Block x(config, digit, 1);
    for (std::size_t k = 0; k < kN; ++k) {
      // D/2 +- up to D 2^-46 ... D 2^-57, the rounding of one to eight terms being below D 2^-49.
      Natural away = d;
      away.divide(u64{1} << (30 + below(rng_, 12)));
      away *= below(rng_, 1 << 16);
      away.divide(u64{1} << 32);
      const Natural value = k % 2 == 0 ? half + away : half - away;
      for (std::size_t i = 0; i < limbs; ++i) x.set(i, 0, k, value % config.primes[i]);
    }
    engines.ref().ntt(x);
    engines.expect_same(describe("limbs", limbs), [&](const Ops& ops) {
      std::vector<Block> out = {Block(config, range(0, 10), 1), Block(config, {8, 9}, 1)};
      ops.mod_up(out[0], x, Digits{static_cast<u32>(limbs)});
      ops.scale_down(out[1], x, nullptr);
      return out;
    });
  }
}

TEST_P(CrossLong, DigitsOfEveryLength) {
  // The tiling of a lift: 1 to 13 limbs to 1 to 13 others.
  constexpr std::size_t kCount = 26;
  const Engines engines({GetParam(), kN, primes_for(GetParam(), kN, kCount), 1, ""});
  const Config& config = engines.config();
  for (u32 from = 1; from <= 13; ++from) {
    const std::size_t to = (from * 5) % 13 + 1;
    Block x(config, range(0, from), 1);
    x.random(rng_);
    engines.expect_same(describe("from", from, "to", to), [&](const Ops& ops) {
      std::vector<Block> out = {Block(config, range(0, from + to), 1),
                                Block(config, range(from, from + to), 1)};
      ops.mod_up(out[0], x, Digits{from});
      ops.scale_down(out[1], x, nullptr);
      return out;
    });
  }
}

// --- many callers ----------------------------------------------------------------------------------

TEST_P(CrossLong, FourThreadsAtOnce) {
  const Engines engines({GetParam(), kN, primes_for(GetParam(), kN, 8), 1, ""});
  const Config& config = engines.config();
  constexpr int kThreads = 4, kRounds = kSanitized ? 4 : 25;
  const Key key(config, 2, rng_);
  const PrimeList own = range(0, 4), all = range(0, 6);
  std::vector<Block> inputs;
  for (int t = 0; t < kThreads; ++t) {
    inputs.emplace_back(config, own, 2);
    inputs.back().random(rng_);
  }
  const auto run = [&](const Ops& ops, const Block& x) {
    const Digits digits = {2, 2}, ids = {1, 0};
    Block acc0(config, all, 2), acc1(config, all, 2), out(config, own, 2), turned(config, own, 2);
    ops.key_switch(acc0, acc1, x, digits, key.view(), ids);
    const ConstView addend = x;
    ops.scale_down(out, acc0, &addend);
    ops.automorphism_ntt(turned, out, 5);
    ops.mul_add(turned, x, out);
    ops.intt(turned);
    std::vector<u64> words(4 * 2 * kN);
    ops.icrt(words, 4, turned, IcrtMethod::garner);
    ops.crt(turned, words, 4, CrtMethod::mod);
    ops.ntt(turned);
    return turned;
  };
  std::vector<Block> want;
  for (const Block& x : inputs) want.push_back(run(engines.ref(), x));
  for (const auto& engine : engines.cpu()) {
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRounds; ++i) {
          if (!(run(*engine, inputs[t]) == want[t])) ++wrong;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0) << engine_name(*engine);
  }
}

// --- what an engine refuses ------------------------------------------------------------------------

TEST(CpuConfig, Refused) {
  const Config good{Word::w64, 1024, primes_below(u64{1} << 61, 1024, 2), 1, ""};
  const auto with = [&](auto change) {
    Config c = good;
    change(c);
    return c;
  };
  EXPECT_NO_THROW(make_cpu_ops(good));
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.isa = "abacus"; })), Unsupported);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.n = 1000; })), InvalidArgument);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.n = 1 << 18; })), InvalidArgument);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.threads = 0; })), InvalidArgument);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.primes[1] = c.primes[0]; })), InvalidArgument);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.primes[0] += 2; })), InvalidArgument);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.word = Word::w52; })), InvalidArgument);
  EXPECT_THROW(make_cpu_ops(with([](Config& c) { c.word = Word::w32; })), InvalidArgument);
  const std::vector<std::string> isas = cpu_isas();
  EXPECT_EQ(isas.back(), "portable");
  EXPECT_EQ(make_cpu_ops(good)->name(), "cpu/" + isas.front());
}

TEST(CpuOperations, RefuseWhatWouldGiveWrongAnswers) {
  std::mt19937_64 rng(1);
  const auto ops = make_cpu_ops({Word::w52, 1024, primes_for(Word::w52, 1024, 4), 1, ""});
  const Config& config = ops->config();
  const auto block = [&](PrimeList primes, std::size_t batch = 1, std::size_t blocks = 1) {
    return std::move(Block(config, std::move(primes), batch, blocks).random(rng));
  };
  Block x = block({0, 1}), y = block({0, 1}), z = block({0, 1}), wide = block({0, 1, 2});
  const Block other = block({0, 2}), pair = block({0, 1}, 2);
  const PrimeList falling = {1, 0}, unknown = {0, 4};
  EXPECT_THROW(ops->ntt({x.view().data, falling, 1}), InvalidArgument);
  EXPECT_THROW(ops->ntt({x.view().data, unknown, 1}), InvalidArgument);
  EXPECT_THROW(ops->ntt({nullptr, x.primes(), 1}), InvalidArgument);
  EXPECT_THROW(ops->add(x, y, other), InvalidArgument);
  EXPECT_THROW(ops->add(x, y, pair), InvalidArgument);
  const std::vector<u64> big = {1, config.primes[1]}, few = {1};
  for (const auto op : {&Ops::mul_scalar, &Ops::mul_scalar_add, &Ops::add_scalar}) {
    EXPECT_THROW((ops.get()->*op)(x, y, big), InvalidArgument);
    EXPECT_THROW((ops.get()->*op)(x, y, few), InvalidArgument);
  }
  EXPECT_THROW(ops->automorphism_ntt(x, x, 5), InvalidArgument);
  EXPECT_THROW(ops->automorphism_coeff(x, x, 5), InvalidArgument);
  EXPECT_THROW(ops->automorphism_ntt(x, y, 4), InvalidArgument);
  const ConstView as[] = {y, x}, bs[] = {z, z};
  EXPECT_THROW(ops->inner_product(x, as, bs), InvalidArgument);
  EXPECT_THROW(ops->tensor(x, y, z, x, wide, wide, wide), InvalidArgument);
  EXPECT_THROW(ops->tensor(x, x, z, y, y, y, y), InvalidArgument);
  const Digits two = {1, 1}, three = {1, 2}, ids = {0, 1}, unknown_ids = {0, 2};
  const Key key(config, 2, rng);
  Block ext = block({0, 1, 2}, 1, 2), lacking = block({0, 2, 3}, 1, 2), acc = block({0, 1, 2});
  EXPECT_THROW(ops->mod_up(ext, x, three), InvalidArgument);
  EXPECT_THROW(ops->mod_up(lacking, x, two), InvalidArgument);
  EXPECT_THROW(ops->key_product(wide, acc, ext, key.view(), unknown_ids, 1, false),
               InvalidArgument);
  const Key cut(config, key, {0, 1, 3});  // 2 is missing
  EXPECT_THROW(ops->key_product(wide, acc, ext, cut.view(), ids, 1, false), InvalidArgument);
  EXPECT_THROW(ops->key_switch(wide, acc, x, two, cut.view(), ids), InvalidArgument);
  EXPECT_THROW(ops->key_product(wide, acc, ext, key.view(), ids, 2, false), InvalidArgument);
  EXPECT_THROW(ops->key_product(wide, wide, ext, key.view(), ids, 1, false), InvalidArgument);
  EXPECT_THROW(ops->key_switch(wide, acc, x, two, key.view(), Digits{0}), InvalidArgument);
  EXPECT_THROW(ops->scale_down(x, x, nullptr), InvalidArgument);
  const ConstView addend = other;
  EXPECT_THROW(ops->scale_down(x, wide, &addend), InvalidArgument);
  std::vector<u64> words(1024);  // one word cannot hold two primes of 50 bits
  EXPECT_THROW(ops->icrt(words, 1, x, IcrtMethod::garner), InvalidArgument);
  EXPECT_THROW(ops->from_int64(x, std::vector<std::int64_t>(1000)), InvalidArgument);
  EXPECT_THROW(ops->from_double(x, std::vector<double>(1024, 0.5)), InvalidArgument);
  EXPECT_THROW(ops->from_double(x, std::vector<double>(1024, NAN)), InvalidArgument);
}

}  // namespace
}  // namespace jali::backend::test
