// The loops whose rates are taken as peak rates really do the work that is counted for them.
#include "jali/backend/peak.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "../properties.h"
#include "jali/arith/modulus.h"
#include "jali/backend/cpu/isa.h"
#include "jali/device/buffer.h"

namespace jali::backend::test {
namespace {

class Peak : public testing::TestWithParam<std::string> {};

TEST_P(Peak, ButterfliesAreThoseOfTheTransform) {
  const u64 seed = test_seed();
  SCOPED_TRACE("JALI_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    const cpu::RowKernels kernels = cpu::select_kernels(GetParam(), word);
    const arith::Modulus mod(primes_for(word, 1024, 1).front());
    const u64 q = mod.value(), twiddle = random() % q;
    cpu::PrimeRow prime;
    prime.q = q;
    prime.one = arith::shoup_constant(1, q, kernels.beta_bits);
    prime.beta = arith::shoup_constant(twiddle, q, kernels.beta_bits);

    const std::size_t lanes = kernels.lanes, count = 2 * kernels.butterfly_pairs * lanes;
    const auto bytes = static_cast<std::size_t>(kernels.word_bytes);
    std::vector<u64> want(count), memory(count);
    for (std::size_t i = 0; i < count; ++i) {
      want[i] = random() % q;
      std::memcpy(reinterpret_cast<char*>(memory.data()) + i * bytes, &want[i], bytes);
    }
    constexpr std::size_t kRounds = 5;
    kernels.butterflies(memory.data(), kRounds, prime);
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t k = 0; k < kernels.butterfly_pairs; ++k) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          u64& x = want[2 * k * lanes + lane];
          u64& y = want[(2 * k + 1) * lanes + lane];
          const u64 t = mod.mul(y, twiddle);
          y = mod.sub(x, t);
          x = mod.add(x, t);
        }
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      u64 have = 0;
      std::memcpy(&have, reinterpret_cast<const char*>(memory.data()) + i * bytes, bytes);
      ASSERT_EQ(mod.reduce(have), want[i]) << word_name(word) << " at " << i;
    }
    EXPECT_GT(cpu_butterfly_rate(word, GetParam()), 0);
  }
}

TEST_P(Peak, DoesComplexButterflies) {
  const cpu::RowKernels kernels = cpu::select_kernels(GetParam(), Word::w64);
  const std::size_t pairs = kernels.complex_pairs,
                    width = (kernels.complex_doubles - 4 * pairs) / 2;
  device::Buffer block =
      device::Pool::create(false)->allocate(kernels.complex_doubles * sizeof(double));
  const std::span values(static_cast<double*>(block.data()), kernels.complex_doubles);
  JALI_SEEDED(rng);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (double& x : values) x = unit(rng);
  // The values are vectors of `width` doubles: re x, im x, re y, im y of each pair, then re w, im
  // w.
  std::vector<double> want(values.begin(), values.end());
  constexpr std::size_t kRounds = 3;
  for (std::size_t r = 0; r < kRounds; ++r) {
    for (std::size_t at = 0; at < 4 * pairs; at += 4 * width) {
      for (std::size_t l = at; l < at + width; ++l) {
        const double w_re = want[4 * pairs + l - at], w_im = want[4 * pairs + width + l - at];
        const double y_re = want[l + 2 * width], y_im = want[l + 3 * width];
        const double re = y_re * w_re - y_im * w_im, im = y_re * w_im + y_im * w_re;
        want[l + 2 * width] = want[l] - re;
        want[l + 3 * width] = want[l + width] - im;
        want[l] += re;
        want[l + width] += im;
      }
    }
  }
  kernels.complex_butterflies(values.data(), kRounds);
  EXPECT_TRUE(std::ranges::equal(values, want));
  EXPECT_GT(cpu_complex_butterfly_rate(GetParam()), 0);
}

TEST_P(Peak, ReadsEveryByte) {
  const cpu::RowKernels kernels = cpu::select_kernels(GetParam(), Word::w64);
  constexpr std::size_t kWords = 512 * 3 / 8;
  device::Buffer block = device::Pool::create(false)->allocate(kWords * 8);
  const std::span words(static_cast<std::uint64_t*>(block.data()), kWords);
  std::ranges::fill(words, 0);
  for (std::size_t i = 0; i < kWords; ++i) {
    words[i] = i + 1;
    EXPECT_EQ(kernels.read(words.data(), kWords * 8), i + 1);
    words[i] = 0;
  }
  for (const std::size_t bytes : {1, 512, 5000, 1 << 20}) {
    EXPECT_GT(cpu_read_rate(GetParam(), bytes), 0);
  }
}

TEST(Stream, HasARate) { EXPECT_GT(cpu_stream_rate(), 0); }

INSTANTIATE_TEST_SUITE_P(All, Peak, testing::ValuesIn(cpu_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jali::backend::test
