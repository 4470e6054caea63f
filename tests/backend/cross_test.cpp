// Compares cpu/ with the oracle: transforms, elementwise operations, automorphisms, integers and
// sampling.
#include "cross.h"

#include "jali/random/prng.h"

namespace jali::backend::test {

INSTANTIATE_TEST_SUITE_P(Rings, Cross,
                         testing::Combine(testing::ValuesIn(kWords), testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           return std::string(word_name(std::get<0>(info.param))) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

namespace {

TEST_P(Cross, Roots) {
  for (const auto& engine : engines_.cpu()) {
    for (PrimeIndex p = 0; p < kPrimes; ++p)
      EXPECT_EQ(engine->ring().root(p), engines_.ref().ring().root(p));
  }
}

TEST_P(Cross, Transforms) {
  for (const auto& shape : shapes()) {
    const std::size_t limbs = shape.first, batch = shape.second;
    for (const Fill fill : fills()) {
      const Block x = block(scattered(limbs), batch, fill);
      engines_.expect_same(describe("limbs", limbs, "batch", batch, "fill", fill),
                           [&](const Engine& engine) {
                             std::vector<Block> out = {x, x};
                             engine.ring().ntt(out[0]);
                             engine.ring().intt(out[1]);
                             return out;
                           });
    }
  }
}

TEST_P(Cross, ElementWise) {
  using Binary = void (RingOps::*)(View, ConstView, ConstView) const;
  using Scalar = void (RingOps::*)(View, ConstView, std::span<const u64>) const;
  const std::pair<const char*, Binary> binaries[] = {
      {"add", &RingOps::add}, {"sub", &RingOps::sub}, {"mul", &RingOps::mul}};
  const std::pair<const char*, Scalar> scalars[] = {{"mul_scalar", &RingOps::mul_scalar},
                                                    {"mul_scalar_add", &RingOps::mul_scalar_add},
                                                    {"add_scalar", &RingOps::add_scalar}};
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
        engines_.expect_same(name + (" " + shape), [&, op = op](const Engine& engine) {
          // Outputs: apart, apart with a broadcast b, out == a, out == b, all three the same, and
          // out == a with a broadcast b.
          std::vector<Block> out = {poison, poison, a, b, a, a};
          (engine.ring().*op)(out[0], a, b);
          (engine.ring().*op)(out[1], a, one);
          (engine.ring().*op)(out[2], out[2], b);
          (engine.ring().*op)(out[3], a, out[3]);
          (engine.ring().*op)(out[4], out[4], out[4]);
          (engine.ring().*op)(out[5], out[5], one);
          return out;
        });
      }
      for (const auto& [name, op] : scalars) {
        const bool accumulates = op == &RingOps::mul_scalar_add;
        engines_.expect_same(name + (" " + shape), [&, op = op](const Engine& engine) {
          std::vector<Block> out = {accumulates ? start : poison, a};
          (engine.ring().*op)(out[0], a, s);
          (engine.ring().*op)(out[1], out[1], s);
          return out;
        });
      }
      engines_.expect_same("neg " + shape, [&](const Engine& engine) {
        std::vector<Block> out = {poison, a};
        engine.ring().neg(out[0], a);
        engine.ring().neg(out[1], out[1]);
        return out;
      });
      const Block c = block(primes, batch, fill);
      engines_.expect_same("tensor " + shape, [&](const Engine& engine) {
        std::vector<Block> out = {poison, poison, poison, poison, poison, poison};
        engine.rlwe().tensor(out[0], out[1], out[2], a, b, c, start);
        engine.rlwe().tensor(out[3], out[4], out[5], a, b, a, b);  // a square: inputs may coincide
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
                             [&](const Engine& engine) {
                               std::vector<Block> out = {Block(config(), primes, batch)};
                               engine.ring().inner_product(out[0], as, bs);
                               return out;
                             });
      }
    }
  }
}

TEST_P(Cross, WeightedSums) {
  for (const std::size_t terms : {1, 3, 16, 125}) {  // the CPU engine gathers 60 operands at once
    if (large() && terms > 3) continue;
    for (const std::size_t count : {1, 4}) {
      for (const std::size_t batch : {1, 3}) {
        if (terms > 16 && (count == 1 || batch > 1)) continue;
        for (const Fill fill : {Fill::random, Fill::max}) {
          const PrimeList primes = scattered(3);
          std::vector<Block> a0, a1, b;
          for (std::size_t t = 0; t < terms; ++t) {
            a0.push_back(block(primes, batch, fill));
            a1.push_back(block(primes, batch, fill));
            b.push_back(block(primes, t % 2 == 0 ? 1 : batch, fill));
          }
          const std::vector<ConstView> x0(a0.begin(), a0.end()), x1(a1.begin(), a1.end());
          // The sums have different lengths and operands; every other sum accumulates.
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
              [&](const Engine& engine) {
                std::vector<Block> out;
                for (std::size_t s = 0; s < 2 * count; ++s) {
                  out.push_back(s % 4 < 2 ? Block(config(), primes, batch) : before);
                }
                std::vector<WeightedSum> sums;
                for (std::size_t s = 0; s < count; ++s) {
                  sums.push_back({out[2 * s], out[2 * s + 1], operands[s], weights[s], s % 2 == 1});
                }
                engine.rlwe().weighted_sums(x0, x1, sums);
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
        // Some operands have exactly the primes of the sum, others have more.
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
            [&](const Engine& engine) {
              std::vector<Block> out(c.products > 0 ? 3 : 2, Block(config(), primes, batch));
              engine.rlwe().combine(out[0], out[1], c.products > 0 ? View(out[2]) : View{}, sum);
              return out;
            });
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
      engines_.expect_same(describe("g", g, "limbs", limbs, "batch", batch),
                           [&](const Engine& engine) {
                             const Block poison(config(), x.primes(), batch);
                             std::vector<Block> out = {poison};
                             engine.ring().automorphism_ntt(out[0], x, g);
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
    // Multiples of a prime and their neighbours are among the integers.
    const u64 q = config().primes[primes.back()];
    for (std::size_t i = 0; i < 8; ++i) {
      c[i + 8] = static_cast<std::int64_t>((i / 2 + 1) * q) * (i % 2 == 0 ? 1 : -1);
      c[i + 16] = c[i + 8] - 1;
      d[i + 16] = static_cast<double>(q >> 8) * (i % 2 == 0 ? 256 : -256);
    }
    engines_.expect_same(describe("limbs", limbs, "batch", batch), [&](const Engine& engine) {
      const Block poison(config(), primes, batch);
      std::vector<Block> out = {poison, poison};
      engine.ring().from_int64(out[0], c);
      engine.ring().from_double(out[1], d);
      return out;
    });
    // Polynomials in a power of X.
    for (std::size_t count = 1; count < n(); count *= 2) {
      const auto some = std::span(c).first(batch * count);
      engines_.expect_same(describe("limbs", limbs, "count", count), [&](const Engine& engine) {
        std::vector<Block> out = {Block(config(), primes, batch)};
        engine.ring().from_int64(out[0], some);
        return out;
      });
    }
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
                             [&](const Engine& engine) {
                               const Block poison(config(), primes, batch);
                               std::vector<Block> out = {poison, poison};
                               engine.ring().crt(out[0], x, words, CrtMethod::mod);
                               engine.ring().crt(out[1], x, words, CrtMethod::mul);
                               return out;
                             });
      }
    }
    for (const Fill fill : fills()) {
      const Block x = block(primes, batch, fill);
      const auto integers_of = [&](const Engine& engine, IcrtMethod method, std::size_t words) {
        std::vector<u64> out(words * batch * n(), 0xABABABABABABABAB);
        engine.ring().icrt(out, words, x, method);
        return out;
      };
      for (const std::size_t words : {need, need + 2}) {
        const auto want = integers_of(engines_.ref(), IcrtMethod::product_sum, words);
        for (const auto& engine : engines_.cpu()) {
          for (const IcrtMethod method :
               {IcrtMethod::automatic, IcrtMethod::product_sum, IcrtMethod::garner}) {
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
  engines_.expect_same("sample_uniform", [&](const Engine& engine) {
    std::vector<Block> out = {Block(config(), primes, 3)};
    engine.ring().sample_uniform(out[0], seed, index);
    return out;
  });
  Block x(config(), primes, 3);
  engines_.cpu()[0]->ring().sample_uniform(x, seed, index);
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

}  // namespace
}  // namespace jali::backend::test
