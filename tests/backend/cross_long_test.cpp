// Compares cpu/ with the oracle on sums so long that lazy reduction could overflow, and with
// several callers at once. Tests what cpu/ refuses.
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "cross.h"
#include "jali/base/error.h"

namespace jali::backend::test {
namespace {

// --- sums of many terms, which would overflow if they were reduced too late ----------------------

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
                          [&](const Engine& engine) {
                            std::vector<Block> out = {Block(engines.config(), primes, 1)};
                            engine.ring().inner_product(out[0], as, bs);
                            return out;
                          });
      Block key(engines.config(), range(0, 3), 1, 4), ext(engines.config(), primes, 1, terms);
      key.fill(fill, rng_);
      ext.fill(fill, rng_);
      Digits ids(terms);
      for (std::size_t t = 0; t < terms; ++t) ids[t] = t % 2;
      for (const u64 g : {u64{1}, u64{5}}) {
        engines.expect_same(describe("key_product terms", terms, "fill", fill, "g", g),
                            [&](const Engine& engine) {
                              std::vector<Block> out = {a, b};
                              engine.rlwe().key_product(
                                  out[0], out[1], ext, {key.data(), 2, key.primes()}, ids, g, true);
                              return out;
                            });
      }
    }
  }
}

TEST_P(CrossLong, WideBases) {
  // With the largest primes of the word, every partial sum of a lift is as large as possible.
  constexpr std::size_t kWide = 48;
  const Engines engines(
      {GetParam(), kN, primes_below(u64{1} << word_prime_bits(GetParam()), kN, kWide), 1, ""});
  const Config& config = engines.config();
  for (const Fill fill : {Fill::max, Fill::random, Fill::half}) {
    if (kSanitized && fill != Fill::max) continue;
    Block x(config, range(0, 40), 1);
    x.fill(fill, rng_);
    Block values = x;
    engines.ref().ring().ntt(values);
    for (const Digits& digits : {Digits{40}, Digits{17, 20, 3}}) {
      engines.expect_same(describe("mod_up", digits, "fill", fill), [&](const Engine& engine) {
        std::vector<Block> out = {Block(config, range(0, kWide), 1, digits.size())};
        engine.rlwe().mod_up(out[0], values, digits);
        return out;
      });
    }
    engines.expect_same(describe("scale_down fill", fill), [&](const Engine& engine) {
      std::vector<Block> out = {Block(config, {0, 1, 45}, 1), Block(config, range(0, 20), 1)};
      engine.rlwe().scale_down(out[0], values, nullptr);
      engine.rlwe().scale_down(out[1], values, nullptr);
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
    engines.expect_same(describe("crt fill", fill), [&](const Engine& engine) {
      std::vector<Block> out = {Block(config, x.primes(), 1), Block(config, x.primes(), 1)};
      engine.ring().crt(out[0], flat, words, CrtMethod::mod);
      engine.ring().crt(out[1], flat, words, CrtMethod::mul);
      return out;
    });
  }
}

TEST_P(CrossLong, LiftsNearHalf) {
  // For values within rounding error of D/2, the sum of doubles that rlwe_ops.h defines decides to
  // which side they are lifted. Engines agree only if every rounding in that sum is the same.
  const Engines engines({GetParam(), kN, primes_for(GetParam(), kN, 10), 1, ""});
  const Config& config = engines.config();
  for (const std::size_t limbs : {1, 2, 3, 5, 8}) {
    const PrimeList digit = range(0, limbs);
    const Natural d = product(config, digit);
    Natural half = d;
    half.divide(2);
    Block x(config, digit, 1);
    for (std::size_t k = 0; k < kN; ++k) {
      // D/2 plus or minus up to D 2^-46 ... D 2^-57. The rounding error of one to eight terms is
      // below D 2^-49.
      Natural away = d;
      away.divide(u64{1} << (30 + below(rng_, 12)));
      away *= below(rng_, 1 << 16);
      away.divide(u64{1} << 32);
      const Natural value = k % 2 == 0 ? half + away : half - away;
      for (std::size_t i = 0; i < limbs; ++i) x.set(i, 0, k, value % config.primes[i]);
    }
    engines.ref().ring().ntt(x);
    engines.expect_same(describe("limbs", limbs), [&](const Engine& engine) {
      std::vector<Block> out = {Block(config, range(0, 10), 1), Block(config, {8, 9}, 1)};
      engine.rlwe().mod_up(out[0], x, Digits{static_cast<u32>(limbs)});
      engine.rlwe().scale_down(out[1], x, nullptr);
      return out;
    });
  }
}

TEST_P(CrossLong, DigitsOfEveryLength) {
  // Lifts of 1 to 13 limbs to 1 to 13 other limbs reach every case of the tiling.
  constexpr std::size_t kCount = 26;
  const Engines engines({GetParam(), kN, primes_for(GetParam(), kN, kCount), 1, ""});
  const Config& config = engines.config();
  for (u32 from = 1; from <= 13; ++from) {
    const std::size_t to = (from * 5) % 13 + 1;
    Block x(config, range(0, from), 1);
    x.random(rng_);
    engines.expect_same(describe("from", from, "to", to), [&](const Engine& engine) {
      std::vector<Block> out = {Block(config, range(0, from + to), 1),
                                Block(config, range(from, from + to), 1)};
      engine.rlwe().mod_up(out[0], x, Digits{from});
      engine.rlwe().scale_down(out[1], x, nullptr);
      return out;
    });
  }
}

// --- many callers --------------------------------------------------------------------------------

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
  const auto run = [&](const Engine& engine, const Block& x) {
    const Digits digits = {2, 2}, ids = {1, 0};
    Block acc0(config, all, 2), acc1(config, all, 2), out(config, own, 2), turned(config, own, 2);
    engine.rlwe().key_switch(acc0, acc1, x, digits, key.view(), ids);
    const ConstView addend = x;
    engine.rlwe().scale_down(out, acc0, &addend);
    engine.ring().automorphism_ntt(turned, out, 5);
    engine.ring().mul(out, x, out);
    engine.ring().add(turned, turned, out);
    engine.ring().intt(turned);
    std::vector<u64> words(4 * 2 * kN);
    engine.ring().icrt(words, 4, turned, IcrtMethod::garner);
    engine.ring().crt(turned, words, 4, CrtMethod::mod);
    engine.ring().ntt(turned);
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

// --- what an engine refuses ----------------------------------------------------------------------

TEST(CpuConfig, Refused) {
  const Config good{Word::w64, 1024, primes_below(u64{1} << 61, 1024, 2), 1, ""};
  const auto with = [&](auto change) {
    Config c = good;
    change(c);
    return c;
  };
  EXPECT_NO_THROW(make_cpu_engine(good));
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.isa = "abacus"; })), Unsupported);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.n = 1000; })), InvalidArgument);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.n = 1 << 18; })), InvalidArgument);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.threads = 0; })), InvalidArgument);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.primes[1] = c.primes[0]; })),
               InvalidArgument);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.primes[0] += 2; })), InvalidArgument);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.word = Word::w52; })), InvalidArgument);
  EXPECT_THROW(make_cpu_engine(with([](Config& c) { c.word = Word::w32; })), InvalidArgument);
  const std::vector<std::string> isas = cpu_isas();
  EXPECT_EQ(isas.back(), "portable");
  EXPECT_EQ(make_cpu_engine(good)->name(), "cpu/" + isas.front());
}

TEST(CpuOperations, RefuseWhatWouldGiveWrongAnswers) {
  std::mt19937_64 rng(1);
  const auto engine = make_cpu_engine({Word::w52, 1024, primes_for(Word::w52, 1024, 4), 1, ""});
  const Config& config = engine->config();
  const auto block = [&](PrimeList primes, std::size_t batch = 1, std::size_t blocks = 1) {
    return std::move(Block(config, std::move(primes), batch, blocks).random(rng));
  };
  Block x = block({0, 1}), y = block({0, 1}), z = block({0, 1}), wide = block({0, 1, 2});
  const Block other = block({0, 2}), pair = block({0, 1}, 2);
  const PrimeList falling = {1, 0}, unknown = {0, 4};
  EXPECT_THROW(engine->ring().ntt({x.view().data, falling, 1}), InvalidArgument);
  EXPECT_THROW(engine->ring().ntt({x.view().data, unknown, 1}), InvalidArgument);
  EXPECT_THROW(engine->ring().ntt({nullptr, x.primes(), 1}), InvalidArgument);
  EXPECT_THROW(engine->ring().add(x, y, other), InvalidArgument);
  EXPECT_THROW(engine->ring().add(x, y, pair), InvalidArgument);
  const std::vector<u64> big = {1, config.primes[1]}, few = {1};
  for (const auto op : {&RingOps::mul_scalar, &RingOps::mul_scalar_add, &RingOps::add_scalar}) {
    EXPECT_THROW((engine->ring().*op)(x, y, big), InvalidArgument);
    EXPECT_THROW((engine->ring().*op)(x, y, few), InvalidArgument);
  }
  EXPECT_THROW(engine->ring().automorphism_ntt(x, x, 5), InvalidArgument);
  EXPECT_THROW(engine->ring().automorphism_ntt(x, y, 4), InvalidArgument);
  const ConstView as[] = {y, x}, bs[] = {z, z};
  EXPECT_THROW(engine->ring().inner_product(x, as, bs), InvalidArgument);
  EXPECT_THROW(engine->rlwe().tensor(x, y, z, x, wide, wide, wide), InvalidArgument);
  EXPECT_THROW(engine->rlwe().tensor(x, x, z, y, y, y, y), InvalidArgument);
  const Digits two = {1, 1}, three = {1, 2}, ids = {0, 1}, unknown_ids = {0, 2};
  const Key key(config, 2, rng);
  Block ext = block({0, 1, 2}, 1, 2), lacking = block({0, 2, 3}, 1, 2), acc = block({0, 1, 2});
  EXPECT_THROW(engine->rlwe().mod_up(ext, x, three), InvalidArgument);
  EXPECT_THROW(engine->rlwe().mod_up(lacking, x, two), InvalidArgument);
  EXPECT_THROW(engine->rlwe().key_product(wide, acc, ext, key.view(), unknown_ids, 1, false),
               InvalidArgument);
  const Key cut(config, key, {0, 1, 3});  // 2 is missing
  EXPECT_THROW(engine->rlwe().key_product(wide, acc, ext, cut.view(), ids, 1, false),
               InvalidArgument);
  EXPECT_THROW(engine->rlwe().key_switch(wide, acc, x, two, cut.view(), ids), InvalidArgument);
  EXPECT_THROW(engine->rlwe().key_product(wide, acc, ext, key.view(), ids, 2, false),
               InvalidArgument);
  EXPECT_THROW(engine->rlwe().key_product(wide, wide, ext, key.view(), ids, 1, false),
               InvalidArgument);
  EXPECT_THROW(engine->rlwe().key_switch(wide, acc, x, two, key.view(), Digits{0}),
               InvalidArgument);
  EXPECT_THROW(engine->rlwe().scale_down(x, x, nullptr), InvalidArgument);
  const ConstView addend = other;
  EXPECT_THROW(engine->rlwe().scale_down(x, wide, &addend), InvalidArgument);
  std::vector<u64> words(1024);  // one word cannot hold two primes of 50 bits
  EXPECT_THROW(engine->ring().icrt(words, 1, x, IcrtMethod::garner), InvalidArgument);
  EXPECT_THROW(engine->ring().from_int64(x, std::vector<std::int64_t>(1000)), InvalidArgument);
  EXPECT_THROW(engine->ring().from_double(x, std::vector<double>(1024, 0.5)), InvalidArgument);
  EXPECT_THROW(engine->ring().from_double(x, std::vector<double>(1024, NAN)), InvalidArgument);
}

}  // namespace
}  // namespace jali::backend::test
