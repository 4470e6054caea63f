// The butterflies whose rate is the ceiling of the transforms do the work that they are credited with.
#include <cstring>
#include <random>
#include <vector>

#include "../properties.h"
#include "jali/arith/modulus.h"
#include "jali/backend/cpu/isa.h"

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

INSTANTIATE_TEST_SUITE_P(All, Peak, testing::ValuesIn(cpu_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jali::backend::test
