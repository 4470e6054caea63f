// Groups of stages in registers, shared by the kernels of the transform.
#pragma once

#include "jali/backend/cuda/common/word.cuh"
#include "jali/backend/cuda/ntt/stage_groups.cuh"

namespace jali::backend::cuda {

/// How a group reads its twiddles (tables.cuh): as they are; where threads hold neighbouring blocks, leaves
/// side by side for the threads; or the first of them alone, the others computed; the same from a block's own copy.
enum class Twiddles { shared, leaves, computed, fetched };
/// Of such a copy the entries that all blocks have alike: the table's first.
constexpr int kAlike = 16;

// A twiddle of stage t + s of a group of the blocks `node` of stage t.
template <class W, Twiddles kFrom>
__device__ __forceinline__ typename W::Twiddle twiddle_at(
    const typename W::Twiddle* __restrict__ table, int t, int s, int node, int group) {
  if constexpr (kFrom == Twiddles::fetched) return table[kAlike + (s << t) + node];
  const int first = 1 << (t + s);
  if constexpr (kFrom == Twiddles::shared) return table[first + (node << s) + group];
  return table[first + (group << t) + node];
}

// One of kG stages on 2^kG registers: 2^kS butterflies share a twiddle each. The group starts at stage
// t of the transform, on that stage's block `node`. In the notation of tables.cuh the twiddle of group a
// of a stage is psi^brv(a) times that of group 0.
template <class W, bool kInverse, Twiddles kFrom, int kG, int kS>
__device__ __forceinline__ void stage(typename W::R* x, int t, int node,
                                      const typename W::Twiddle* __restrict__ table,
                                      const typename W::Prime& prime) {
  constexpr int kHalf = (1 << kG) >> (kS + 1);
  constexpr bool kComputed = kFrom == Twiddles::computed || kFrom == Twiddles::fetched;
#pragma unroll
  for (int p = 0; p < (1 << kG) / 2; ++p) {
    const int group = p / kHalf, at = group * 2 * kHalf + p % kHalf;
    const auto f = W::twiddle(twiddle_at<W, kFrom>(table, t, kS, node, kComputed ? 0 : group));
    if constexpr (kInverse) {
      W::template inverse_butterfly<kG - 1 - kS, kG>(x[at], x[at + kHalf], f, prime);
      if (kComputed && group > 0) {
        x[at + kHalf] = W::times(x[at + kHalf], W::twiddle(table[group]), prime);
      }
    } else {
      if (kComputed && group > 0) {
        x[at + kHalf] = W::times(x[at + kHalf], W::twiddle(table[group]), prime);
      }
      W::butterfly(x[at], x[at + kHalf], f, prime);
    }
  }
}

template <class W, bool kInverse, Twiddles kFrom, int kG, int kS = kInverse ? kG - 1 : 0>
__device__ __forceinline__ void stages(typename W::R* x, int t, int node,
                                       const typename W::Twiddle* __restrict__ table,
                                       const typename W::Prime& prime) {
  stage<W, kInverse, kFrom, kG, kS>(x, t, node, table, prime);
  if constexpr (!kInverse && kS + 1 < kG) {
    stages<W, false, kFrom, kG, kS + 1>(x, t, node, table, prime);
  }
  if constexpr (kInverse && kS > 0) stages<W, true, kFrom, kG, kS - 1>(x, t, node, table, prime);
}

// To the range that a group of butterflies may start from.
template <class W, bool kInverse, int kCount>
__device__ __forceinline__ void settle(typename W::R (&x)[kCount], const typename W::Prime& prime) {
#pragma unroll
  for (int e = 0; e < kCount; ++e) {
    if constexpr (kInverse) {
      W::settle_inverse(x[e], prime);
    } else {
      W::settle_forward(x[e], prime);
    }
  }
}

}  // namespace jali::backend::cuda
