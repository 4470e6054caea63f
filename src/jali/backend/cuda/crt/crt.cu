// CRT-MUL. Integers and powers of two are 32-bit words, whose products add up in 96 bits without
// reductions; a thread reads a word once for four limbs.
#include <algorithm>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/common/reduce.cuh"
#include "jali/backend/cuda/crt/crt.cuh"
#include "jali/backend/cuda/variants/crt_variants.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kGroup = 4;  // limbs of a vector of constants

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// kVectors * kGroup limbs a thread.
template <class W, int kPieces, int kVectors>
__global__ void __launch_bounds__(kIntegerThreads)
    crt_mul_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                   const uint4* __restrict__ powers, typename W::Stored* out,
                   const u64* __restrict__ integers, unsigned words) {
  after_predecessor();
  const unsigned first = blockIdx.z * kVectors, groups = (s.limb_count + kGroup - 1) / kGroup;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(blockIdx.y) << s.log_n) + k;
  const std::size_t stride = static_cast<std::size_t>(s.batch) << s.log_n;
  const std::size_t row = static_cast<std::size_t>(words) * 2 * kPieces;
  const uint4* power[kVectors];
#pragma unroll
  for (unsigned v = 0; v < kVectors; ++v) power[v] = powers + min(first + v, groups - 1) * row;
  Sum96 sum[kVectors][kPieces][kGroup];
#pragma unroll 4
  for (unsigned w = 0; w < words; ++w) {
    const u64 x = integers[w * stride + at];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const u32 word = half == 0 ? static_cast<u32>(x) : static_cast<u32>(x >> 32);
#pragma unroll
      for (unsigned v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
          const uint4 p = power[v][(2 * w + half) * kPieces + piece];
          sum[v][piece][0].add(word, p.x);
          sum[v][piece][1].add(word, p.y);
          sum[v][piece][2].add(word, p.z);
          sum[v][piece][3].add(word, p.w);
        }
      }
    }
  }
#pragma unroll
  for (unsigned v = 0; v < kVectors; ++v) {
#pragma unroll
    for (unsigned i = 0; i < kGroup; ++i) {
      const unsigned limb = (first + v) * kGroup + i;
      if (limb >= s.limb_count) return;
      const typename W::Prime prime = primes[limbs.prime[limb]];
      const auto& low = sum[v][0][i];
      if constexpr (kPieces == 1) {
        out[limb * stride + at] = W::canonical(total(low, prime));
      } else {
        out[limb * stride + at] = W::canonical(total(low, sum[v][1][i], prime));
      }
    }
  }
}

}  // namespace

void check_crt_words(std::size_t words) {
  constexpr std::size_t kMaxWords = 64;
  require<Unsupported>(words <= kMaxWords, "CRT on the GPU holds integers of up to 4096 bits");
}

std::vector<u64> primes_of(const Config& config, std::span<const PrimeIndex> primes) {
  std::vector<u64> q;
  for (const PrimeIndex i : primes) q.push_back(config.primes[i]);
  return q;
}

int pieces_of(const std::vector<u64>& primes) {
  return std::any_of(primes.begin(), primes.end(), [](u64 q) { return q >> 32 != 0; }) ? 2 : 1;
}

CrtPlan::CrtPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> primes,
                 std::size_t words) {
  check_crt_words(words);
  const auto q = primes_of(config, primes);
  pieces = pieces_of(q);
  const std::size_t groups = (q.size() + kGroup - 1) / kGroup;
  const auto p = static_cast<std::size_t>(pieces);
  std::vector<u32> table(groups * 2 * words * p * kGroup);
  for (std::size_t i = 0; i < q.size(); ++i) {
    const arith::Modulus mod(q[i]);
    u64 power = 1;
    for (std::size_t j = 0; j < 2 * words; ++j, power = mod.mul(power, mod.reduce(u64{1} << 32))) {
      for (std::size_t piece = 0; piece < p; ++piece) {
        table[((i / kGroup * 2 * words + j) * p + piece) * kGroup + i % kGroup] =
            static_cast<u32>(power >> 32 * piece);
      }
    }
  }
  powers = Constant(stream, table.data(), table.size() * sizeof(u32));
}

template <class W>
void crt(const Stream& stream, const Tables<W>& t, const CrtPlan& plan, const Shape& s,
         const Limbs& limbs, void* out, const u64* integers, unsigned words, CrtMethod method) {
  if (s.limb_count == 0) return;
  if (method == CrtMethod::mod) return crt_by_horner<W>(stream, t, s, limbs, out, integers, words);
  using Prime = typename W::Prime;
  const auto* primes = t.primes.template as<Prime>();
  auto* to = static_cast<typename W::Stored*>(out);
  const unsigned blocks = (1u << s.log_n) / kIntegerThreads;
  const unsigned groups = (s.limb_count + kGroup - 1) / kGroup;
  const bool many = (std::size_t{s.batch} * groups << s.log_n) > 2 * kFewThreads;
  auto* kernel = plan.pieces == 1 ? (many ? crt_mul_kernel<W, 1, 2> : crt_mul_kernel<W, 1, 1>)
                                  : (many ? crt_mul_kernel<W, 2, 2> : crt_mul_kernel<W, 2, 1>);
  launch(stream, "crt", kernel, dim3(blocks, s.batch, many ? (groups + 1) / 2 : groups),
         kIntegerThreads, 0, 1, s, limbs, primes, plan.powers.as<uint4>(), to, integers, words);
}

#define JALI_INSTANTIATE(W)                                                           \
  template void crt<W>(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&, \
                       const Limbs&, void*, const u64*, unsigned, CrtMethod);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
