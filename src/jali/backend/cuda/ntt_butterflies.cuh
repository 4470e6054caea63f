// Groups of stages in registers, shared by the kernels of the transform.
#pragma once

#include "jali/backend/cuda/ntt_groups.cuh"
#include "jali/backend/cuda/word.cuh"

namespace jali::backend::cuda {

// One of kG stages on 2^kG registers: 2^kS butterflies share a twiddle each. The group starts at stage
// t of the transform, on that stage's block `node`.
template <class W, bool kInverse, bool kLeaf, int kG, int kS>
__device__ __forceinline__ void stage(typename W::R* x, int t, int node,
                                      const typename W::Twiddle* __restrict__ twiddle,
                                      const typename W::Prime& prime) {
  const auto* w = twiddle + (1 << (t + kS)) + (kLeaf ? node : node << kS);
  const int step = kLeaf ? 1 << t : 1;  // leaves: group-major, so that a warp reads neighbours
  constexpr int kHalf = (1 << kG) >> (kS + 1);
#pragma unroll
  for (int p = 0; p < (1 << kG) / 2; ++p) {
    const int group = p / kHalf, at = group * 2 * kHalf + p % kHalf;
    const auto f = W::twiddle(w[group * step]);
    if constexpr (kInverse) {
      W::inverse_butterfly(x[at], x[at + kHalf], f, prime);
    } else {
      W::butterfly(x[at], x[at + kHalf], f, prime);
    }
  }
}

template <class W, bool kInverse, bool kLeaf, int kG, int kS = kInverse ? kG - 1 : 0>
__device__ __forceinline__ void stages(typename W::R* x, int t, int node,
                                       const typename W::Twiddle* __restrict__ twiddle,
                                       const typename W::Prime& prime) {
  stage<W, kInverse, kLeaf, kG, kS>(x, t, node, twiddle, prime);
  if constexpr (!kInverse && kS + 1 < kG) {
    stages<W, false, kLeaf, kG, kS + 1>(x, t, node, twiddle, prime);
  }
  if constexpr (kInverse && kS > 0) stages<W, true, kLeaf, kG, kS - 1>(x, t, node, twiddle, prime);
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
