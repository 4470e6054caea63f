// Compares every sampler with an oracle that reads the same stream in the plainest way, its
// distribution with the formula, and its bytes with a golden hash. Seeds travel between machines,
// so the bytes are part of the format.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../hex.h"
#include "../seeded.h"
#include "jali/base/error.h"
#include "jali/base/hash.h"
#include "jali/random/gaussian_table.h"
#include "jali/random/prng.h"
#include "jali/random/uniform_kernel.h"

namespace jali::random {
namespace {

using Ints = std::vector<std::int64_t>;

using test::hex;

template <class T>
std::string golden(const std::vector<T>& x) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(x.data());
  return hex(hash256({p, x.size() * sizeof(T)})).substr(0, 32);
}

Seed fixed_seed() {
  Seed seed{};
  seed[0] = 42;
  return seed;
}

// A fixed seed makes the first run deterministic, and a fresh seed finds what no fixed one would.
// The bounds are 6.5 standard deviations, so a correct sampler fails a check with probability below
// 1e-9.
std::vector<Seed> seeds() { return {fixed_seed(), os_seed()}; }
constexpr double kDeviations = 6.5;

// Chi-square of counts against expectations, with bins below 20 joined. The cube root of Wilson and
// Hilferty turns it into standard deviations of a normal variable.
double chi_square(const std::vector<double>& seen, const std::vector<double>& expected) {
  double chi = 0, s = 0, e = 0;
  int bins = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    s += seen[i];
    e += expected[i];
    if (e < 20 && i + 1 < seen.size()) continue;
    if (e > 0) {
      chi += (s - e) * (s - e) / e;
      ++bins;
    }
    s = e = 0;
  }
  const double d = bins - 1;
  return (std::cbrt(chi / d) - (1 - 2 / (9 * d))) / std::sqrt(2 / (9 * d));
}

// The probabilities of the integers in [-reach, reach].
std::vector<double> discrete_gaussian(double std, int reach) {
  std::vector<double> p;
  for (int x = -reach; x <= reach; ++x) p.push_back(std::exp(-0.5 * x * x / (std * std)));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

std::vector<double> counts(const Ints& x, int reach) {
  std::vector<double> out(static_cast<std::size_t>(2 * reach + 1));
  for (const std::int64_t v : x) {
    EXPECT_LE(std::abs(v), reach);
    if (std::abs(v) <= reach) out[static_cast<std::size_t>(v + reach)] += 1;
  }
  return out;
}

void expect_distribution(const Ints& x, std::vector<double> p, const Seed& seed) {
  for (double& v : p) v *= static_cast<double>(x.size());
  const int reach = static_cast<int>(p.size() / 2);
  EXPECT_LT(std::abs(chi_square(counts(x, reach), p)), kDeviations) << "seed " << hex(seed);
}

// Neighbours must not be correlated. If they are independent, the sum of x_i x_{i+lag} over n has
// deviation sqrt(n) var.
void expect_uncorrelated(const Ints& x, double var, const Seed& seed) {
  for (const std::size_t lag : {1, 2, 16, 256}) {
    double sum = 0;
    for (std::size_t i = lag; i < x.size(); ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i - lag]);
    }
    EXPECT_LT(std::abs(sum), kDeviations * std::sqrt(static_cast<double>(x.size())) * var)
        << "lag " << lag << ", seed " << hex(seed);
  }
}

constexpr std::size_t kMany = 1 << 20;
const std::size_t kSizes[] = {0, 1, 2, 15, 16, 17, 511, 512, 513, 2048, 2049, 5000};

// --- uniform
// ---------------------------------------------------------------------------------------

const std::uint64_t kModuli[] = {1,
                                 2,
                                 3,
                                 257,
                                 65537,
                                 (1u << 30) - 35,
                                 1073479681,
                                 (1ull << 31) - 1,
                                 (1ull << 32) - 5,
                                 (1ull << 32) + 15,
                                 1125899904679937,
                                 (1ull << 50) + 55,
                                 2305843009211596801,
                                 (1ull << 60) + 33};

template <class Out>
void check_uniform_against_oracle(std::uint64_t q) {
  for (const Seed& seed : seeds()) {
    for (const std::size_t size : kSizes) {
      Prng prng(seed, 3), plain(seed, 3);
      std::vector<Out> got(size + 1, 77);
      sample_uniform(prng, q, std::span(got).first(size));
      ASSERT_EQ(got[size], Out{77}) << "wrote past the end";
      const std::size_t bytes = q < (1ull << 32) ? 4 : 8;
      for (std::size_t i = 0; i < size; ++i) {
        std::uint64_t x = q;
        while (x >= q) {
          std::uint8_t raw[8] = {};
          plain.fill({raw, bytes});
          x = 0;
          for (std::size_t k = 8; k-- > 0;) x = x << 8 | raw[k];
          x %= std::uint64_t{1} << std::bit_width(q);
        }
        ASSERT_EQ(got[i], x) << "q " << q << ", index " << i << ", seed " << hex(seed);
      }
      ASSERT_EQ(prng.next_u64(), plain.next_u64()) << "took another number of words, q " << q;
    }
  }
}

TEST(Uniform, FollowsItsDefinitionWordByWord) {
  for (const std::uint64_t q : kModuli) {
    check_uniform_against_oracle<std::uint64_t>(q);
    if (q < (1ull << 32)) check_uniform_against_oracle<std::uint32_t>(q);
  }
}

template <class Raw, class Out>
void check_kernels_keep_the_same() {
  std::mt19937_64 random(jali::test::test_seed());
  for (const unsigned bits : {1u, 2u, 20u, 31u, 32u, 33u, 50u, 61u}) {
    if (bits > 8 * sizeof(Raw)) break;
    const Raw mask = static_cast<Raw>(~Raw{0}) >> (8 * sizeof(Raw) - bits);
    for (const Raw bound : {Raw{1}, static_cast<Raw>(mask / 2 + 1), mask}) {
      for (std::size_t count = 0; count < 100; ++count) {
        std::vector<Raw> x(count);
        for (Raw& word : x) word = static_cast<Raw>(random());
        std::vector<Out> want(count + 1, 77), have = want;
        const std::size_t kept = keep_below_portable(x.data(), count, mask, bound, want.data());
        ASSERT_EQ((keep_below_best<Raw, Out>()(x.data(), count, mask, bound, have.data())), kept);
        ASSERT_EQ(have[count], Out{77}) << "wrote past the end";
        want.resize(kept), have.resize(kept);
        ASSERT_EQ(have, want) << bits << " bits, bound " << bound << ", count " << count;
        ASSERT_EQ(kept, static_cast<std::size_t>(std::ranges::count_if(
                            x, [&](Raw word) { return (word & mask) < bound; })));
      }
    }
  }
}

TEST(Uniform, EveryKernelKeepsTheSameWords) {
  check_kernels_keep_the_same<std::uint32_t, std::uint32_t>();
  check_kernels_keep_the_same<std::uint32_t, std::uint64_t>();
  check_kernels_keep_the_same<std::uint64_t, std::uint64_t>();
}

TEST(Uniform, IsUniform) {
  for (const Seed& seed : seeds()) {
    for (const std::uint64_t q : kModuli) {
      if (q < 100) continue;
      std::vector<std::uint64_t> x(1 << 17);
      Prng prng(seed, 0);
      sample_uniform(prng, q, x);
      // 64 intervals of equal length, and the residues modulo 61.
      std::vector<double> high(64), low(61), expect_high(64, 0), expect_low(61, x.size() / 61.0);
      const double n = static_cast<double>(x.size());
      for (const std::uint64_t v : x) {
        high[static_cast<std::size_t>(static_cast<double>(v) / static_cast<double>(q) * 64)] += 1;
        low[v % 61] += 1;
      }
      for (double& e : expect_high) e = n / 64;
      if (q == 257) {
        std::vector<double> each(257), expect(257, n / 257);
        for (const std::uint64_t v : x) each[v] += 1;
        EXPECT_LT(std::abs(chi_square(each, expect)), kDeviations) << hex(seed);
      } else {  // 64 and 61 do not divide q, which shows at 65537 as 0.05 deviations a bin
        EXPECT_LT(std::abs(chi_square(high, expect_high)), kDeviations) << q << hex(seed);
        EXPECT_LT(std::abs(chi_square(low, expect_low)), kDeviations) << q << hex(seed);
      }
    }
  }
}

TEST(Uniform, RefusesModuliOutOfRange) {
  Prng prng(fixed_seed(), 0);
  std::vector<std::uint64_t> x(4);
  std::vector<std::uint32_t> y(4);
  EXPECT_THROW(sample_uniform(prng, 0, x), InvalidArgument);
  EXPECT_THROW(sample_uniform(prng, 1ull << 61, x), InvalidArgument);
  EXPECT_THROW(sample_uniform(prng, 0, y), InvalidArgument);
  EXPECT_THROW(sample_uniform(prng, 1ull << 32, y), InvalidArgument);
}

// --- ternary
// -----------------------------------------------------------------------------------------

TEST(Ternary, FollowsItsDefinition) {
  for (const Seed& seed : seeds()) {
    for (const std::size_t size : kSizes) {
      Ints x(size);
      Prng prng(seed, 4), plain(seed, 4);
      sample_ternary(prng, x);
      for (std::size_t i = 0; i < size; ++i) {
        std::uint8_t b = 255;
        while (b == 255) plain.fill({&b, 1});
        ASSERT_EQ(x[i], b % 3 - 1) << "index " << i << ", seed " << hex(seed);
      }
      ASSERT_EQ(prng.next_u64(), plain.next_u64());
    }
  }
}

TEST(Ternary, IsUniformAndUncorrelated) {
  for (const Seed& seed : seeds()) {
    Ints x(kMany);
    Prng prng(seed, 0);
    sample_ternary(prng, x);
    expect_distribution(x, {1 / 3.0, 1 / 3.0, 1 / 3.0}, seed);
    expect_uncorrelated(x, 2 / 3.0, seed);
  }
}

TEST(SparseTernary, HasItsWeightAtAnyLength) {
  Prng prng(os_seed(), 0);
  for (const std::size_t n : {0, 1, 2, 3, 7, 64, 100, 1024, 3000}) {
    for (const std::size_t weight : {std::size_t{0}, std::size_t{1}, n / 3, n / 2, n}) {
      if (weight > n) continue;
      Ints x(n, 9);
      sample_sparse_ternary(prng, weight, x);
      std::size_t nonzero = 0;
      for (const std::int64_t v : x) {
        ASSERT_LE(std::abs(v), 1);
        nonzero += v != 0;
      }
      EXPECT_EQ(nonzero, weight) << "length " << n;
    }
  }
  Ints x(10);
  EXPECT_THROW(sample_sparse_ternary(prng, 11, x), InvalidArgument);
}

TEST(SparseTernary, PositionsAndSignsAreUniform) {
  constexpr std::size_t n = 48, weight = 12, draws = 20000;
  for (const Seed& seed : seeds()) {
    Prng prng(seed, 0);
    std::vector<double> at(n), pairs(n);
    double signs = 0;
    for (std::size_t k = 0; k < draws; ++k) {
      Ints x(n);
      sample_sparse_ternary(prng, weight, x);
      for (std::size_t i = 0; i < n; ++i) {
        at[i] += x[i] != 0;
        signs += static_cast<double>(x[i]);
        // Both i and i+1 are non-zero with probability w (w-1) / (n (n-1)).
        pairs[i] += x[i] != 0 && x[(i + 1) % n] != 0;
      }
    }
    // The weight is fixed, so the n counts have variance draws p (1-p) and one linear constraint.
    constexpr double p = double(weight) / n;
    double chi = 0;
    for (const double c : at) chi += (c - draws * p) * (c - draws * p) / (draws * p * (1 - p));
    chi *= (n - 1.0) / n;
    const double d = n - 1;
    EXPECT_LT(std::abs((std::cbrt(chi / d) - (1 - 2 / (9 * d))) / std::sqrt(2 / (9 * d))),
              kDeviations)
        << hex(seed);
    EXPECT_LT(std::abs(signs), kDeviations * std::sqrt(double(draws * weight))) << hex(seed);
    constexpr double both = double(weight) * (weight - 1) / (n * (n - 1.0));
    for (const double c : pairs) {
      EXPECT_LT(std::abs(c - draws * both), kDeviations * std::sqrt(draws * both)) << hex(seed);
    }
  }
}

// --- centred binomial
// ----------------------------------------------------------------------------------

TEST(Error, FollowsItsDefinition) {
  for (const Seed& seed : seeds()) {
    for (const std::size_t size : kSizes) {
      Ints x(size);
      Prng prng(seed, 5), plain(seed, 5);
      sample_error(prng, x);
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t w = plain.next_u64();
        const std::uint64_t mask = (1u << 21) - 1;
        ASSERT_EQ(x[i], std::popcount(w & mask) - std::popcount(w >> 32 & mask));
      }
      ASSERT_EQ(prng.next_u64(), plain.next_u64());
    }
  }
}

TEST(Error, IsTheCentredBinomial) {
  // C(42, 21 + x) / 2^42.
  std::vector<double> p;
  double variance = 0;
  for (int x = -21; x <= 21; ++x) {
    p.push_back(std::exp(std::lgamma(43.0) - std::lgamma(22.0 + x) - std::lgamma(22.0 - x) -
                         42 * std::log(2.0)));
    variance += x * x * p.back();
  }
  EXPECT_NEAR(std::sqrt(variance), kErrorStd, 1e-9);
  for (const Seed& seed : seeds()) {
    Ints x(kMany);
    Prng prng(seed, 0);
    sample_error(prng, x);
    expect_distribution(x, p, seed);
    expect_uncorrelated(x, 10.5, seed);
  }
}

// --- Gaussian
// --------------------------------------------------------------------------------------------

TEST(Gaussian, TableIsTheTailOfTheDistribution) {
  long double total = 1;
  std::vector<long double> p{1};
  for (int k = 1; k < 200; ++k) {
    p.push_back(std::exp(-static_cast<long double>(k) * k / 128));
    total += 2 * p.back();
  }
  for (std::size_t k = 0; k < std::size(kGaussianTail); ++k) {
    long double tail = 0;
    for (std::size_t i = p.size() - 1; i > k; --i) tail += 2 * p[i];
    const long double want = tail / total * 0x1p63L;
    const long double have = static_cast<long double>(kGaussianTail[k][0]) +
                             static_cast<long double>(kGaussianTail[k][1]) * 0x1p-64L;
    EXPECT_NEAR(static_cast<double>(have - want), 0, 8) << k;
  }
  EXPECT_LE(std::size(kGaussianTail), 110u);  // the bound that the stated distance uses
}

TEST(Gaussian, StdIsAtLeastAskedAndClose) {
  EXPECT_EQ(gaussian_std(0.5), 8);
  EXPECT_EQ(gaussian_std(8), 8);
  for (double std = 8.5; std <= 0x1p60; std *= 1.0371) {
    EXPECT_GE(gaussian_std(std), std);
    EXPECT_LE(gaussian_std(std), std * (1 + 8 / std + 32 / (std * std) + 0x1p-50)) << std;
  }
  EXPECT_EQ(gaussian_std(0x1p60), 0x1p60);
  Prng prng(fixed_seed(), 0);
  Ints x(1);
  EXPECT_THROW(sample_gaussian(prng, 0, x), InvalidArgument);
  EXPECT_THROW(sample_gaussian(prng, -1, x), InvalidArgument);
  EXPECT_THROW(sample_gaussian(prng, 0x1.1p60, x), InvalidArgument);
  EXPECT_THROW(sample_gaussian(prng, std::nan(""), x), InvalidArgument);
}

TEST(Gaussian, SmallOnesAreTheDiscreteGaussian) {
  for (const Seed& seed : seeds()) {
    for (const double std : {1.0, 8.0, 20.0, 41.0, 100.0, 777.0}) {
      Ints x(1 << 18);
      Prng prng(seed, 0);
      sample_gaussian(prng, std, x);
      const double real = gaussian_std(std);
      expect_distribution(x, discrete_gaussian(real, static_cast<int>(10 * real)), seed);
      expect_uncorrelated(x, real * real, seed);
    }
  }
}

TEST(Gaussian, LargeOnesAreGaussianToTheLastBit) {
  for (const Seed& seed : seeds()) {
    for (const double std : {0x1p20, 0x1.7p33, 0x1.fp47, 0x1.3p58, 0x1p60}) {
      Ints x(1 << 17);
      Prng prng(seed, 0);
      sample_gaussian(prng, std, x);
      // 128 bins of equal probability by the normal distribution function; low bits uniform.
      std::vector<double> bins(128), low(128), expect(128, x.size() / 128.0);
      double square = 0, mean = 0;
      for (const std::int64_t v : x) {
        const double z = static_cast<double>(v) / gaussian_std(std);
        const double cdf = 0.5 * std::erfc(-z / std::sqrt(2.0));
        bins[std::min<std::size_t>(127, static_cast<std::size_t>(cdf * 128))] += 1;
        low[static_cast<std::uint64_t>(v) % 128] += 1;
        square += z * z;
        mean += z;
      }
      const double n = static_cast<double>(x.size());
      EXPECT_LT(std::abs(chi_square(bins, expect)), kDeviations) << std << " " << hex(seed);
      EXPECT_LT(std::abs(chi_square(low, expect)), kDeviations) << std << " " << hex(seed);
      EXPECT_LT(std::abs(mean), kDeviations * std::sqrt(n)) << std << " " << hex(seed);
      EXPECT_LT(std::abs(square - n), kDeviations * std::sqrt(2 * n)) << std << hex(seed);
    }
  }
}

TEST(Gaussian, AnyLength) {
  for (const std::size_t size : kSizes) {
    Ints x(size + 1, 0x55);
    Prng prng(fixed_seed(), 0);
    sample_gaussian(prng, 1e6, std::span(x).first(size));
    EXPECT_EQ(x[size], 0x55);
    EXPECT_EQ(std::count(x.begin(), x.end(), 0), 0) << "odds of a zero: below 1e-5 a value";
  }
}

// --- the bytes are format
// --------------------------------------------------------------------------------

TEST(Golden, SamplerBytesNeverChange) {
  const std::size_t n = 5000;
  std::vector<std::uint32_t> w32(n);
  std::vector<std::uint64_t> w64(n);
  Ints x(n);
  const auto run = [&](auto&& sample, auto& out) {
    Prng p(fixed_seed(), 0x5a5a5a5a00010002);
    sample(p, out);
    return golden(out);
  };
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_uniform(p, 1073479681, o); }, w32),
            "b9f8f0910682dfed22ffbb14cf28f835");
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_uniform(p, 1125899904679937, o); }, w64),
            "27cc4ce01c39fdbf8d7682551d0bf6e9");
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_uniform(p, 2305843009211596801, o); }, w64),
            "5df64030a3afb818e38103a150c081da");
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_ternary(p, o); }, x),
            "0d20ec5507756092b3a738f01839a107");
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_sparse_ternary(p, 192, o); }, x),
            "be4f0685caad0bf67f908c14f5e642f7");
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_error(p, o); }, x),
            "75f6fea5d75bb4f967bcbb7c16ff05c7");
  EXPECT_EQ(run([](Prng& p, auto& o) { sample_gaussian(p, 0x1p40, o); }, x),
            "46256efaa2b1efb4f1d058afb65c0b7d");
}

}  // namespace
}  // namespace jali::random
