// The negacyclic transform on the GPU.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/tables.cuh"

namespace jali::backend::cuda {

/// Limbs of a block by value: kernel parameters need no upload.
constexpr std::size_t kMaxLimbs = 256;
constexpr std::uint16_t kSkip = 0xffff;  // a limb that a kernel leaves alone
struct Limbs {
  std::uint16_t prime[kMaxLimbs];
};

/// Residues a thread of a transform holds, as a power of two: what 64 registers have room for.
template <class W>
constexpr int kLogHeld = sizeof(typename W::R) == 4 ? 4 : 3;
// Groups of a pass of m stages: sizes as equal as can be, none above h, larger ones first.
__host__ __device__ constexpr int group_count(int m, int h) { return (m + h - 1) / h; }
__host__ __device__ constexpr int group_size(int m, int h, int k) {
  return m / group_count(m, h) + (k < m % group_count(m, h) ? 1 : 0);
}
/// Stages of the pass over contiguous tiles: all of them when a row is one tile.
template <class W>
constexpr int contiguous_stages(int log_n) {
  constexpr bool kNarrow = sizeof(typename W::Stored) == 4;
  return log_n <= (kNarrow ? 14 : 13) ? log_n : log_n == 14 ? 7 : log_n == 17 ? 9 : 8;
}
/// Stages of the last group, whose twiddles a thread does not share with its neighbours.
template <class W>
constexpr int last_group(int log_n) {
  const int m = contiguous_stages<W>(log_n), h = kLogHeld<W>;
  return group_size(m, h, group_count(m, h) - 1);
}

/// rows = limbs * batch contiguous rows of N = 2^log_n, in place.
template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n);
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n);

}  // namespace jali::backend::cuda
