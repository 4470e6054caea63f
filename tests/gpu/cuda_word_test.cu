// Sums of products, at the ends of their range, against their definition.
#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <vector>

#include "../seeded.h"
#include "jali/arith/primes.h"
#include "jali/backend/cuda/common/reduce.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/engines.h"
#include "jali/device/cuda/check.cuh"

namespace jali::testing {
namespace {

using namespace backend::cuda;

// out[prime][sum] = {canonical, lazy}
__global__ void total_kernel(const W32::Prime* primes, const std::uint64_t* sums, uint2* out) {
  const auto at = blockIdx.x * blockDim.x + threadIdx.x;
  const W32::Prime prime = primes[blockIdx.x];
  out[at] = {W32::total({sums[at]}, prime), W32::total_lazy({sums[at]}, prime)};
}

/// The largest prime of each size.
backend::Config config_of(Word word, int most_bits) {
  backend::Config config{word, 1024, {}, 2, ""};
  for (int bits = 14; bits <= most_bits; ++bits) {
    for (auto q = (std::uint64_t{1} << bits) - 2047;; q -= 2048) {
      if (!arith::is_prime(q)) continue;
      config.primes.push_back(q);
      break;
    }
  }
  return config;
}

template <class T>
std::vector<T> fetch(const Constant& from, std::size_t count) {
  std::vector<T> to(count);
  check(cudaMemcpy(to.data(), from.as<T>(), count * sizeof(T), cudaMemcpyDeviceToHost), "copy");
  return to;
}

TEST(CudaWord, TotalsOfAnySumAreRight) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  constexpr std::size_t kSums = 1024;
  const backend::Config config = config_of(Word::w32, 30);
  const std::uint64_t seed = jali::test::test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> sums;
  for (const std::uint64_t q : config.primes) {
    const std::uint64_t most = ~std::uint64_t{0}, square = (q - 1) * (q - 1);
    std::vector<std::uint64_t> some{0,
                                    1,
                                    q - 1,
                                    q,
                                    square,
                                    15 * square,
                                    most,
                                    most - most % q,
                                    most - most % q - 1,
                                    most << 32,
                                    most >> 32};
    for (std::uint64_t k = 1; k <= 64; ++k) {  // one below a multiple, and it
      const std::uint64_t multiple = random() / q * q;
      some.insert(some.end(), {multiple, multiple - 1, (k << 58) - 1});
    }
    while (some.size() < kSums) some.push_back(random());
    sums.insert(sums.end(), some.begin(), some.end());
  }
  const Stream stream(0);
  const Tables<W32> tables(stream, config);
  const std::vector<uint2> poison(sums.size(), uint2{0x5a5a5a5a, 0x5a5a5a5a});
  const Constant in(stream, sums.data(), sums.size() * sizeof(sums[0]));
  const Constant out(stream, poison.data(), poison.size() * sizeof(uint2));
  total_kernel<<<static_cast<unsigned>(config.primes.size()), kSums, 0, stream.get()>>>(
      tables.primes.as<W32::Prime>(), in.as<std::uint64_t>(), const_cast<uint2*>(out.as<uint2>()));
  stream.synchronize();
  const auto got = fetch<uint2>(out, sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t q = config.primes[i / kSums];
    ASSERT_EQ(got[i].x, sums[i] % q) << sums[i] << " modulo " << q;
    ASSERT_LT(got[i].y, 4 * q) << sums[i];
    ASSERT_EQ(got[i].y % q, sums[i] % q) << sums[i];
  }
}

// out[prime][sum]
template <class W>
__global__ void total96_kernel(const typename W::Prime* primes, const Sum96* sums,
                               std::uint64_t* out) {
  const auto prime = primes[blockIdx.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = W::canonical(total(sums[threadIdx.x], prime));
}

template <class W>
class CudaWordSums : public ::testing::Test {};
using Words = ::testing::Types<W32, W52, W64>;
TYPED_TEST_SUITE(CudaWordSums, Words);

TYPED_TEST(CudaWordSums, OfAnySizeAreReduced) {
  using W = TypeParam;
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  constexpr bool kIsW32 = std::is_same_v<W, W32>;
  const auto config = config_of(kIsW32                   ? Word::w32
                                : std::is_same_v<W, W52> ? Word::w52
                                                         : Word::w64,
                                kIsW32 ? 30 : 32);
  const std::uint64_t seed = jali::test::test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Sum96> sums;
  const std::uint32_t ends[] = {0, 1, 127, ~0U - 1, ~0U};  // 2^64 - 1 and more meets every carry
  for (const auto a : ends) {
    for (const auto b : ends) {
      for (const auto c : ends) sums.push_back({{a, b, c}});
    }
  }
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  while (sums.size() < 512) sums.push_back({{word(), word(), word()}});
  while (sums.size() < 1024) sums.push_back({{word(), ~0U, word()}});
  const Stream stream(0);
  const Tables<W> tables(stream, config);
  const std::vector<std::uint64_t> poison(config.primes.size() * sums.size(), 0x5a5a5a5a5a5a5a5a);
  const Constant in(stream, sums.data(), sums.size() * sizeof(Sum96));
  const Constant out(stream, poison.data(), poison.size() * sizeof(poison[0]));
  total96_kernel<W>
      <<<static_cast<unsigned>(config.primes.size()), static_cast<unsigned>(sums.size()), 0,
         stream.get()>>>(tables.primes.template as<typename W::Prime>(), in.as<Sum96>(),
                         const_cast<std::uint64_t*>(out.as<std::uint64_t>()));
  stream.synchronize();
  const auto got = fetch<std::uint64_t>(out, poison.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::uint64_t q = config.primes[i / sums.size()];
    const Sum96& s = sums[i % sums.size()];
    const auto high = static_cast<unsigned __int128>(s.w[2]) << 64;
    const auto all = high | static_cast<std::uint64_t>(s.w[1]) << 32 | s.w[0];
    ASSERT_EQ(got[i], static_cast<std::uint64_t>(all % q))
        << s.w[2] << ", " << s.w[1] << ", " << s.w[0] << " modulo " << q;
  }
}

}  // namespace
}  // namespace jali::testing
