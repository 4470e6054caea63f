// Samplers whose first launch makes too few words, which almost never happens: the rest comes from
// the same stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "../seeded.h"
#include "jali/arith/primes.h"
#include "jali/backend/cuda/sampling/sampling.cuh"
#include "jali/backend/cuda/sampling/sparse_secret.cuh"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/device/cuda/check.cuh"
#include "jali/random/prng.h"

namespace jali::testing {
namespace {

using namespace backend::cuda;

TEST(CudaSampling, ShortLaunchesGiveTheSameBits) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  const std::uint64_t number = jali::test::test_seed();
  SCOPED_TRACE("seed " + std::to_string(number));
  std::mt19937_64 random(number);
  std::array<std::uint8_t, 32> seed;
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(random());
  const int log_n = 14;
  const std::size_t n = std::size_t{1} << log_n, batch = 2;
  // Words have 4 bytes for primes below 2^32, and 8 above. Just above a power of two almost half of
  // them are rejected.
  backend::Config config{Word::w64, n, {}, 2, ""};
  for (const int bits : {30, 33, 60}) {
    std::uint64_t q = (std::uint64_t{1} << bits) + 1;
    while (!arith::is_prime(q)) q += 2 * n;
    config.primes.push_back(q);
  }
  const auto cpu = backend::make_cpu_engine(config);
  const std::vector<PrimeIndex> primes{0, 1, 2};
  Moduli moduli;
  for (const PrimeIndex i : primes) moduli.push_back({config.primes[i], i});
  const Shape shape{3, batch, log_n};
  std::vector<std::uint64_t> want(primes.size() * batch * n), got(want.size());
  const Stream stream(0);
  const auto block = [&](std::size_t bytes, int byte) {
    const std::vector<std::uint8_t> content(bytes, static_cast<std::uint8_t>(byte));
    return Constant(stream, content.data(), bytes);
  };
  const auto writable = [](const Constant& c) { return const_cast<char*>(c.as<char>()); };
  for (const double deviations : {-1000.0, -20.0, 0.0, kDeviations}) {
    SCOPED_TRACE(deviations);
    const Constant out = block(want.size() * 8, 0x5a);
    const auto same = [&](const char* what) {
      stream.synchronize();
      check(cudaMemcpy(got.data(), out.as<char>(), got.size() * 8, cudaMemcpyDeviceToHost), "copy");
      ASSERT_EQ(got, want) << what;
    };
    const Constant counts = block(uniform_scratch<W64>(shape, moduli, deviations), 0);
    sample_uniform<W64>(stream, shape, moduli, seed, 7, writable(counts), writable(out),
                        deviations);
    cpu->ring().sample_uniform({want.data(), primes, batch}, seed, 7);
    same("uniform");
    const Constant few = block(small_scratch(batch * n, deviations), 0);
    const Constant integers = block(batch * n, 0x33);
    sample_small<W64>(stream, shape, moduli, backend::Small::ternary, seed, 9, writable(few),
                      writable(integers), writable(out), deviations);
    cpu->ring().sample_small({want.data(), primes, batch}, backend::Small::ternary, seed, 9);
    same("ternary");
  }
}

// Words are sorted by so few bits that two are alike in most draws, which are then repeated.
TEST(CudaSampling, SparseSecretsAreDrawnAgain) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  const std::uint64_t number = jali::test::test_seed();
  SCOPED_TRACE("seed " + std::to_string(number));
  std::mt19937_64 random(number);
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(random());
  const int log_n = 12;
  const std::size_t n = std::size_t{1} << log_n, weight = 100;
  const std::uint64_t key_bits = ~std::uint64_t{0}
                                 << 42;  // of 4096 words two are alike with chance 0.86
  const Stream stream(0);
  const std::vector<std::uint8_t> zeros(sparse_scratch(log_n) + n, 0);
  for (std::uint64_t nonce = 0; nonce < 8; ++nonce) {
    random::Prng prng(seed, nonce);
    std::vector<std::uint64_t> words(n);
    unsigned draws = 0;
    const auto alike = [](std::uint64_t a, std::uint64_t b) { return a >> 2 == b >> 2; };
    do {
      prng.fill({reinterpret_cast<std::uint8_t*>(words.data()), n * 8});
      for (std::size_t i = 0; i < n; ++i) {
        words[i] = (words[i] & key_bits) | (i < weight ? 1 + (words[i] & 1) : 0);
      }
      std::sort(words.begin(), words.end());
      ++draws;
    } while (std::adjacent_find(words.begin(), words.end(), alike) != words.end());
    const Constant scratch(stream, zeros.data(), zeros.size());
    auto* at = const_cast<char*>(scratch.as<char>());
    auto* values = reinterpret_cast<std::int8_t*>(at + sparse_scratch(log_n));
    for (unsigned draw = 0; draw < draws; ++draw) {
      sample_sparse(stream, log_n, weight, seed, nonce, draw, at, values, key_bits);
      stream.synchronize();
      std::uint32_t same = 7;
      check(cudaMemcpy(&same, at, sizeof(same), cudaMemcpyDeviceToHost), "copy");
      EXPECT_EQ(same, draw + 1 < draws ? 1U : 0U) << nonce << ", draw " << draw << " of " << draws;
    }
    std::vector<std::int8_t> got(n);
    check(cudaMemcpy(got.data(), values, n, cudaMemcpyDeviceToHost), "copy");
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(got[i], static_cast<int>(words[i] & 1) - static_cast<int>(words[i] >> 1 & 1)) << i;
    }
  }
}

}  // namespace
}  // namespace jali::testing
