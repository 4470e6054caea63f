// The CUDA engine beside the CPU engine, with the same random operands on both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../seeded.h"
#include "brief.h"
#include "jali/arith/primes.h"
#include "jali/backend/embedding_ops.h"
#include "jali/backend/engine.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/device/buffer.h"

namespace jali::testing {

using backend::ConstView;
using backend::View;
using Primes = std::vector<PrimeIndex>;

struct Case {
  Word word;
  int log_n;
  std::size_t batch;
  PrimeIndex level = 0;  // limbs of ciphertexts, if a test takes one level alone
};

inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const int log_n : {10, 11, 12, 13, 14, 15, 16, 17}) {
      for (const std::size_t batch : {1, 3}) {
        if (log_n > 14 && batch > 1) continue;
        all.push_back({word, log_n, batch});
      }
    }
    all.push_back({word, 12, 64});
  }
  return all;
}

inline std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(word_name(info.param.word)) + "_n" + std::to_string(info.param.log_n) + "_b" +
         std::to_string(info.param.batch) +
         (info.param.level == 0 ? "" : "_l" + std::to_string(info.param.level));
}

inline std::vector<std::uint64_t> make_primes(Word word, int log_n, std::size_t count) {
  // Mixed sizes: the largest the word allows, and small ones.
  std::vector<std::uint64_t> primes;
  std::uint64_t bound = std::uint64_t{1} << word_prime_bits(word);
  const std::uint64_t step = std::uint64_t{2} << log_n;
  std::uint64_t q = bound - step + 1;
  for (; primes.size() < count - 2; q -= step) {
    if (arith::is_prime(q)) primes.push_back(q);
  }
  q = (std::uint64_t{1} << (log_n + 9)) + 1;
  for (; primes.size() < count; q += step) {
    if (arith::is_prime(q)) primes.push_back(q);
  }
  return primes;
}

class GpuOps : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kPrimes = 10;
  virtual std::size_t prime_count() const { return kPrimes; }

  void SetUp() override {
    if (backend::cuda_device_count() == 0) {
      GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
    }
    const Case c = GetParam();
    backend::Config config{c.word, std::size_t{1} << c.log_n,
                           make_primes(c.word, c.log_n, prime_count()), 4, ""};
    n = config.n;
    batch = c.batch;
    cpu = backend::make_cpu_engine(config);
    gpu = backend::make_cuda_engine(config);
    pool = device::Pool::create(false, gpu->memory());
    seed = jali::test::test_seed();
    random.seed(seed);
  }

  /// Whether a variant is one of backend/cuda/variants/, which the engine never chooses. Only long
  /// tests run them.
  static bool never_chosen(const std::string& family, const std::string& name) {
    return family == "ntt" && (name == "dense" || name == "tensor");
  }
  /// The engine's own choice, and an engine for every other variant that it may choose: of one
  /// family, if it is named.
  struct Variant {
    std::string name;
    std::unique_ptr<backend::Engine> engine;
  };
  std::vector<Variant> every_variant(const std::string& of = {}) const {
    std::vector<Variant> all;
    all.push_back({"auto", backend::make_cuda_engine(gpu->config())});
    for (const auto& family : backend::cuda_variants()) {
      if (brief(n) && family.family == "ntt") continue;
      if (!of.empty() && family.family != of) continue;
      for (const auto& name : family.names) {
        if (name == family.names.front() || never_chosen(family.family, name)) continue;
        backend::Config config = gpu->config();
        config.variants = {{family.family, name}};
        all.push_back({family.family + " " + name, backend::make_cuda_engine(config)});
      }
    }
    return all;
  }

  /// Engines for the variants that it never chooses.
  std::vector<Variant> other_variants() const {
    std::vector<Variant> all;
    for (const auto& family : backend::cuda_variants()) {
      for (const auto& name : family.names) {
        if (brief(n) || !never_chosen(family.family, name)) continue;
        backend::Config config = gpu->config();
        config.variants = {{family.family, name}};
        all.push_back({family.family + " " + name, backend::make_cuda_engine(config)});
      }
    }
    return all;
  }

  /// The same residues on both sides.
  struct Pair {
    Primes primes;
    std::size_t batch;
    std::vector<std::byte> host;
    device::Buffer device;
    View cpu() { return {host.data(), primes, batch}; }
    View gpu() { return {device.data(), primes, batch}; }
  };

  std::size_t bytes(std::size_t limbs, std::size_t b) const {
    return limbs * b * n * word_bytes(cpu->config().word);
  }
  // Poisoned outputs, different on the two sides.
  Pair poison(Primes primes, std::size_t b = 0, std::size_t blocks = 1) {
    if (b == 0) b = batch;
    const std::size_t size = bytes(primes.size(), b) * blocks;
    Pair p{std::move(primes), b, std::vector<std::byte>(size, std::byte{0x5a}),
           pool->allocate(size)};
    const std::vector<std::byte> other(size, std::byte{0x33});
    gpu->memory()->copy_in(p.device.data(), other.data(), size);
    return p;
  }
  Pair fresh(Primes primes, std::size_t b = 0) {
    Pair p = poison(std::move(primes), b);
    for (std::size_t i = 0; i < p.primes.size(); ++i) {
      const std::uint64_t q = cpu->config().primes[p.primes[i]];
      for (std::size_t k = 0; k < p.batch * n; ++k) {
        const auto draw = random();
        // Some residues are 0 or q - 1.
        const std::uint64_t x = draw % 64 == 0 ? q - 1 : draw % 64 == 1 ? 0 : draw % q;
        const std::size_t at = i * p.batch * n + k;
        if (cpu->config().word == Word::w32) {
          reinterpret_cast<std::uint32_t*>(p.host.data())[at] = static_cast<std::uint32_t>(x);
        } else {
          reinterpret_cast<std::uint64_t*>(p.host.data())[at] = x;
        }
      }
    }
    gpu->memory()->copy_in(p.device.data(), p.host.data(), p.host.size());
    return p;
  }
  void same(Pair& p, const char* what) {
    std::vector<std::byte> got(p.host.size());
    gpu->memory()->copy_out(got.data(), p.device.data(), got.size());
    ASSERT_TRUE(got == p.host) << what << " differs, seed " << seed;
  }
  void SeedsExpandToTheSame(const Primes& primes) {
    auto out = poison(primes);
    std::array<std::uint8_t, 32> key{};
    for (auto& b : key) b = static_cast<std::uint8_t>(random());
    const auto index = static_cast<std::uint32_t>(random());
    cpu->ring().sample_uniform(out.cpu(), key, index),
        gpu->ring().sample_uniform(out.gpu(), key, index);
    same(out, "sample_uniform");
  }
  std::vector<std::uint64_t> scalars(const Primes& primes) {
    std::vector<std::uint64_t> s;
    for (const auto i : primes) s.push_back(random() % cpu->config().primes[i]);
    return s;
  }
  static Primes range(PrimeIndex begin, PrimeIndex end) {
    Primes p(end - begin);
    std::iota(p.begin(), p.end(), begin);
    return p;
  }

  std::size_t n = 0, batch = 1;
  std::unique_ptr<backend::Engine> cpu, gpu;
  std::shared_ptr<device::Pool> pool;
  unsigned seed = 0;
  std::mt19937_64 random;
};

}  // namespace jali::testing
