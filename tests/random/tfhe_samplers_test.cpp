// The samplers of TFHE: bits, blocks with at most one bit set, and TUniform. Each is compared with
// an oracle that reads the same stream in the plainest way, and its distribution with the formula.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "jali/base/error.h"
#include "jali/random/prng.h"

namespace jali::random {
namespace {

// Bounds are 6.5 standard deviations: a correct sampler fails one with a probability below 1e-9.
constexpr double kDeviations = 6.5;

TEST(SampleBits, AreTheBitsOfTheStream) {
  const Seed seed = os_seed();
  for (const std::size_t count : {1u, 7u, 8u, 2048u, 5000u}) {
    std::vector<std::uint8_t> out(count), bytes((count + 7) / 8);
    Prng a(seed, 3), b(seed, 3);
    sample_bits(a, out);
    b.fill(bytes);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], bytes[i / 8] >> (i % 8) & 1) << i;
  }
}

TEST(SampleOneHot, BlocksAreUniformAmongVectorsWithAtMostOneBit) {
  for (const std::size_t group : {1u, 2u, 3u, 4u, 5u, 8u, 64u}) {
    const Seed seed = os_seed();
    const std::size_t blocks = 20000;
    std::vector<std::uint8_t> out(blocks * group);
    Prng prng(seed, 0), plain(seed, 0);
    sample_one_hot(prng, group, out);
    std::vector<double> seen(group + 1);
    const std::size_t limit = 256 / (group + 1) * (group + 1);
    for (std::size_t b = 0; b < blocks; ++b) {
      std::uint8_t byte = 0;
      do {
        plain.fill({&byte, 1});
      } while (byte >= limit);
      const std::size_t chosen = byte % (group + 1);
      for (std::size_t j = 0; j < group; ++j) {
        ASSERT_EQ(out[b * group + j], chosen == j ? 1 : 0) << "group " << group << " block " << b;
      }
      seen[chosen] += 1;
    }
    const double p = 1.0 / static_cast<double>(group + 1), n = static_cast<double>(blocks);
    for (const double count : seen) {
      EXPECT_LT(std::abs(count - n * p), kDeviations * std::sqrt(n * p * (1 - p))) << group;
    }
  }
  std::vector<std::uint8_t> out(10);
  Prng prng(os_seed(), 0);
  EXPECT_THROW(sample_one_hot(prng, 3, out), InvalidArgument);
  EXPECT_THROW(sample_one_hot(prng, 0, out), InvalidArgument);
}

TEST(SampleTUniform, EveryValueHasItsWeight) {
  for (const int bits : {0, 1, 2, 4}) {
    const Seed seed = os_seed();
    const std::size_t count = 100000;
    std::vector<std::int64_t> out(count);
    Prng prng(seed, 0);
    sample_tuniform(prng, bits, out);
    std::map<std::int64_t, double> seen;
    for (const std::int64_t x : out) seen[x] += 1;
    const std::int64_t edge = std::int64_t{1} << bits;
    EXPECT_EQ(seen.begin()->first, -edge);
    EXPECT_EQ(seen.rbegin()->first, edge);
    for (std::int64_t x = -edge; x <= edge; ++x) {
      const double p = std::ldexp(std::abs(x) == edge ? 0.5 : 1.0, -bits - 1);
      const double n = static_cast<double>(count);
      EXPECT_LT(std::abs(seen[x] - n * p), kDeviations * std::sqrt(n * p * (1 - p)))
          << bits << " bits, value " << x;
    }
  }
}

TEST(SampleTUniform, HasItsVarianceAndItsEnds) {
  for (const int bits : {3, 17, 30, 31, 45, 62}) {
    const Seed seed = os_seed();
    const std::size_t count = 50000;
    std::vector<std::int64_t> out(count);
    Prng prng(seed, 0), plain(seed, 0);
    sample_tuniform(prng, bits, out);
    const double edge = std::ldexp(1.0, bits);
    double sum = 0, squares = 0;
    for (const std::int64_t x : out) {
      std::uint64_t word = 0;
      plain.fill({reinterpret_cast<std::uint8_t*>(&word), bits <= 30 ? 4u : 8u});
      // floor((u + 1) / 2) - 2^bits of the low bits + 2 bits, in 128 bits.
      const auto u = bits == 62 ? word : word & ((std::uint64_t{1} << (bits + 2)) - 1);
      const auto half = static_cast<std::uint64_t>((static_cast<unsigned __int128>(u) + 1) / 2);
      ASSERT_EQ(x, static_cast<std::int64_t>(half - (std::uint64_t{1} << bits)));
      const double y = static_cast<double>(x) / edge;
      ASSERT_LE(std::abs(y), 1);
      sum += y;
      squares += y * y;
    }
    const double n = static_cast<double>(count);
    const double variance = (2 + std::ldexp(1.0, -2 * bits)) / 6;  // in units of 4^bits
    EXPECT_LT(std::abs(sum / n), kDeviations * std::sqrt(variance / n)) << bits;
    // E[y^4] of the uniform distribution is 1/5, and at 3 bits within a tenth of it.
    EXPECT_LT(std::abs(squares / n - variance), kDeviations * std::sqrt((0.22 - 0.11) / n)) << bits;
  }
  std::vector<std::int64_t> out(1);
  Prng prng(os_seed(), 0);
  EXPECT_THROW(sample_tuniform(prng, 63, out), InvalidArgument);
  EXPECT_THROW(sample_tuniform(prng, -1, out), InvalidArgument);
}

}  // namespace
}  // namespace jali::random
