// Sums of products of 32-bit residues against their definition, at the ends of their range.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/backend/cuda/check.cuh"
#include "jali/backend/cuda/tables.cuh"
#include "jali/backend/ops.h"

namespace jali::testing {
namespace {

using namespace backend::cuda;

// out[prime][sum] = {canonical, lazy}
__global__ void total_kernel(const W32::Prime* primes, const std::uint64_t* sums, uint2* out) {
  const auto at = blockIdx.x * blockDim.x + threadIdx.x;
  const W32::Prime prime = primes[blockIdx.x];
  out[at] = {W32::total({sums[at]}, prime), W32::total_lazy({sums[at]}, prime)};
}

TEST(CudaWord, TotalsOfAnySumAreRight) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  constexpr std::size_t kSums = 1024;
  backend::Config config{Word::w32, 1024, {}, 2, ""};
  for (int bits = 14; bits <= 30; ++bits) {  // the largest prime of each size
    for (auto q = (std::uint64_t{1} << bits) - 2047;; q -= 2048) {
      if (!arith::is_prime(q)) continue;
      config.primes.push_back(q);
      break;
    }
  }
  const unsigned seed = std::random_device{}();
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
  std::vector<uint2> got(sums.size());
  check(cudaMemcpy(got.data(), out.as<uint2>(), got.size() * sizeof(uint2), cudaMemcpyDeviceToHost),
        "copy");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t q = config.primes[i / kSums];
    ASSERT_EQ(got[i].x, sums[i] % q) << sums[i] << " modulo " << q;
    ASSERT_LT(got[i].y, 4 * q) << sums[i];
    ASSERT_EQ(got[i].y % q, sums[i] % q) << sums[i];
  }
}

}  // namespace
}  // namespace jali::testing
