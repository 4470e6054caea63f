// The CPU engine keeps the mathematical properties on every instruction set of this machine, and
// every set gives the bits of the portable one.
#include <thread>

#include "../properties.h"
#include "every_operation.h"
#include "jali/base/error.h"

namespace jali::backend::test {
namespace {

constexpr Word kWords[] = {Word::w32, Word::w52, Word::w64};

Config make_config(Word word, std::size_t n, int threads, std::string isa, std::size_t primes = 9) {
  return {word, n, primes_for(word, n, primes), threads, std::move(isa)};
}

void expect_same(const std::vector<Output>& have, const std::vector<Output>& want) {
  ASSERT_EQ(have.size(), want.size());
  for (std::size_t i = 0; i < have.size(); ++i) {
    EXPECT_TRUE(same(have[i].block, want[i].block)) << have[i].name << " (output " << i << ")";
  }
}

class CpuIsa : public testing::TestWithParam<std::string> {};

TEST_P(CpuIsa, KeepsThePropertiesOfEveryOperation) {
  JALI_SEEDED(rng);
  for (const Word word : kWords) {
    SCOPED_TRACE(word_name(word));
    const auto engine = make_cpu_engine(make_config(word, 1024, 1, GetParam()));
    EXPECT_EQ(engine->name(), "cpu/" + GetParam());
    check_transforms(*engine, rng);
    check_automorphisms(*engine, rng);
    check_mod_up(*engine, rng);
    check_scale_down(*engine, rng);
    check_key_switch(*engine, rng);
    check_integers(*engine, rng);
  }
}

TEST_P(CpuIsa, TransformsEveryRingDegree) {
  JALI_SEEDED(rng);
  for (const Word word : kWords) {
    for (int log_n = 11; log_n <= 17; ++log_n) {
      SCOPED_TRACE(std::string(word_name(word)) + " log_n " + std::to_string(log_n));
      const std::size_t n = std::size_t{1} << log_n;
      // Two primes: the largest and the smallest of the word.
      Config config{word, n, primes_below(u64{1} << word_prime_bits(word), n, 1), 1, GetParam()};
      config.primes.push_back(primes_below(32 * n, n, 1).front());
      const auto engine = make_cpu_engine(config);
      for (const Fill fill : {Fill::random, Fill::max}) {
        Block x(config, range(0, 2), 1);
        x.fill(fill, rng);
        const Block coefficients = x;
        engine->ring().ntt(x);
        for (int i = 0; i < 4; ++i) {
          const std::size_t limb = below(rng, 2), k = below(rng, n);
          const u64 psi = engine->ring().root(static_cast<PrimeIndex>(limb));
          ASSERT_EQ(x.at(limb, 0, k), transformed(coefficients, limb, 0, k, psi))
              << "limb " << limb << " index " << k;
        }
        engine->ring().intt(x);
        EXPECT_TRUE(same(x, coefficients));
      }
    }
  }
}

TEST_P(CpuIsa, MultipliesPolynomials) {
  JALI_SEEDED(rng);
  for (const Word word : kWords) {
    const Config config = make_config(word, 1024, 1, GetParam(), 1);
    const auto engine = make_cpu_engine(config);
    Block x(config, range(0, 1), 1), y = x, product = x;
    x.random(rng), y.random(rng);
    const u64 q = config.primes[0];
    std::vector<u64> want(1024, 0);
    for (std::size_t i = 0; i < 1024; ++i) {
      for (std::size_t j = 0; j < 1024; ++j) {
        const u64 p = ref::mul(x.at(i), y.at(j), q);
        u64& at = want[(i + j) % 1024];
        at = i + j < 1024 ? ref::add(at, p, q) : ref::sub(at, p, q);
      }
    }
    engine->ring().ntt(x), engine->ring().ntt(y);
    engine->ring().mul(product, x, y);
    engine->ring().intt(product);
    for (std::size_t k = 0; k < 1024; ++k) ASSERT_EQ(product.at(k), want[k]) << k;
  }
}

TEST_P(CpuIsa, AgreesWithPortableBitForBit) {
  const u64 seed = test_seed();
  SCOPED_TRACE("JALI_TEST_SEED=" + std::to_string(seed));
  struct Case {
    std::size_t n, batch;
    int threads;
    Fill fill;
  };
  for (const Case& c : {Case{1024, 1, 1, Fill::random}, Case{1024, 3, 2, Fill::max},
                        Case{4096, 3, 1, Fill::alternating}, Case{4096, 1, 2, Fill::max},
                        Case{16384, 1, 2, Fill::random}, Case{1024, 1, 5, Fill::random},
                        Case{1024, 1, 16, Fill::max}}) {
    for (const Word word : kWords) {
      SCOPED_TRACE(std::string(word_name(word)) + " n " + std::to_string(c.n) + " batch " +
                   std::to_string(c.batch) + " threads " + std::to_string(c.threads));
      const Config config = make_config(word, c.n, c.threads, GetParam());
      Config portable = config;
      portable.isa = "portable";
      portable.threads = 1;
      const auto have = make_cpu_engine(config), want = make_cpu_engine(portable);
      expect_same(every_operation(*have, config, c.batch, c.fill, seed),
                  every_operation(*want, config, c.batch, c.fill, seed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuIsa, testing::ValuesIn(cpu_isas()),
                         [](const auto& info) { return info.param; });

TEST(Cpu, AgreesWithTheOracle) {
  const u64 seed = test_seed();
  SCOPED_TRACE("JALI_TEST_SEED=" + std::to_string(seed));
  for (const Word word : kWords) {
    for (const Fill fill : {Fill::random, Fill::max}) {
      SCOPED_TRACE(word_name(word));
      const Config config = make_config(word, 1024, 2, "");
      expect_same(every_operation(*make_cpu_engine(config), config, 2, fill, seed),
                  every_operation(*make_ref_engine(config), config, 2, fill, seed));
    }
  }
}

/// Digits that are longer, and more of them, than a sum of products takes before it is reduced.
TEST(Cpu, FoldsLongSums) {
  JALI_SEEDED(rng);
  for (const Word word : kWords) {
    const Config config = make_config(word, 1024, 1, "", 24);
    const auto ref = make_ref_engine(config);
    const PrimeList all = range(0, 24), low = range(0, 20), high = range(19, 24);
    for (const Fill fill : {Fill::random, Fill::max}) {
      Block x(config, low, 1), ext(config, all, 1, 20);
      x.fill(fill, rng), ext.fill(fill, rng);
      Block key_block(config, all, 1, 40);
      key_block.fill(fill, rng);
      const KeyView key{key_block.data(), 20, all};
      std::vector<u32> ids(20);
      std::iota(ids.begin(), ids.end(), u32{0});
      const auto run = [&](const Engine& engine) {
        std::vector<Output> outputs;
        for (const std::vector<u32>& digits :
             {std::vector<u32>{20}, std::vector<u32>{3, 17}, std::vector<u32>(20, 1)}) {
          Block acc0(config, all, 1), acc1(config, all, 1), lifts(config, all, 1, digits.size());
          engine.rlwe().mod_up(lifts, x, digits);
          outputs.push_back({"mod_up", std::move(lifts)});
          engine.rlwe().key_switch(acc0, acc1, x, digits, key, std::span(ids).first(digits.size()));
          outputs.push_back({"key_switch 0", std::move(acc0)});
          outputs.push_back({"key_switch 1", std::move(acc1)});
        }
        Block acc0(config, all, 1), acc1(config, all, 1), down(config, high, 1);
        engine.rlwe().key_product(acc0, acc1, ext, key, ids, 5, false);
        outputs.push_back({"key_product 0", std::move(acc0)});
        outputs.push_back({"key_product 1", std::move(acc1)});
        engine.rlwe().scale_down(down, x, nullptr);
        outputs.push_back({"scale_down", std::move(down)});
        return outputs;
      };
      const std::vector<Output> want = run(*ref);
      for (const std::string& isa : cpu_isas()) {
        SCOPED_TRACE(isa + " " + std::string(word_name(word)));
        Config forced = config;
        forced.isa = isa;
        expect_same(run(*make_cpu_engine(forced)), want);
      }
    }
  }
}

TEST(Cpu, ServesSeveralCallersAtOnce) {
  const u64 seed = test_seed();
  SCOPED_TRACE("JALI_TEST_SEED=" + std::to_string(seed));
  const Config config = make_config(Word::w52, 1024, 3, "");
  const auto engine = make_cpu_engine(config);
  const auto want = every_operation(*engine, config, 2, Fill::random, seed);
  std::vector<std::vector<Output>> have(4);
  std::vector<std::thread> callers;
  for (auto& output : have) {
    callers.emplace_back([&] { output = every_operation(*engine, config, 2, Fill::random, seed); });
  }
  for (std::thread& caller : callers) caller.join();
  for (const auto& output : have) expect_same(output, want);
}

TEST(Cpu, RefusesWhatItCannotDo) {
  const Config good = make_config(Word::w52, 1024, 1, "", 2);
  EXPECT_NO_THROW(make_cpu_engine(good));
  const auto refuses = [&](auto change) {
    Config config = good;
    change(config);
    EXPECT_THROW(make_cpu_engine(config), InvalidArgument);
  };
  refuses([](Config& c) { c.n = 1000; });
  refuses([](Config& c) { c.n = 512; });
  refuses([](Config& c) { c.n = std::size_t{1} << 18; });
  refuses([](Config& c) { c.n = 0; });
  refuses([](Config& c) { c.threads = 0; });
  refuses([](Config& c) { c.threads = -1; });
  refuses([](Config& c) { c.primes[1] = c.primes[0]; });
  refuses([](Config& c) { c.primes[0] = 0; });
  refuses([](Config& c) { c.primes[0] = 1; });
  refuses([](Config& c) { c.primes[0] += 2; });
  refuses([](Config& c) { c.primes[0] = 2049 * 2049ull; });  // 1 mod 2n, a square
  refuses([](Config& c) { c.primes[0] = primes_below(u64{1} << 52, 1024, 1).front(); });
  Config unknown = good;
  unknown.isa = "vax";
  EXPECT_THROW(make_cpu_engine(unknown), Unsupported);

  const auto engine = make_cpu_engine(good);
  Block two(good, range(0, 2), 1), one(good, range(0, 1), 1), batch(good, range(0, 2), 2);
  EXPECT_THROW(engine->ring().add(two, two, one), InvalidArgument);
  EXPECT_THROW(engine->ring().add(two, two, batch), InvalidArgument);
  EXPECT_THROW(engine->ring().add(batch, two, batch), InvalidArgument);
  EXPECT_THROW(engine->ring().mul_scalar(two, two, std::vector<u64>{1}), InvalidArgument);
  EXPECT_THROW(engine->ring().automorphism_ntt(two, two, 4), InvalidArgument);
  EXPECT_THROW(engine->ring().automorphism_ntt(two, two, 4), InvalidArgument);
  EXPECT_THROW(engine->rlwe().scale_down(one, batch, nullptr), InvalidArgument);
  EXPECT_THROW(engine->ring().from_int64(one, std::vector<std::int64_t>(5)), InvalidArgument);
  std::vector<double> bad(1024, 0.0);
  for (const double x : {0.5, 0x1p1000, std::nan(""), HUGE_VAL}) {
    bad[7] = x;
    EXPECT_THROW(engine->ring().from_double(one, bad), InvalidArgument);
  }
  std::vector<u64> narrow(1024);
  EXPECT_THROW(engine->ring().icrt(narrow, 1, two, IcrtMethod::garner), InvalidArgument);
  EXPECT_THROW(engine->ring().root(2), InvalidArgument);
}

}  // namespace
}  // namespace jali::backend::test
