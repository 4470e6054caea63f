// Groups of stages in registers. One loop of butterflies serves the rows of one_pass.cuh and the
// tiles of tile.cuh; they differ in where they look up the twiddles of a group.
#pragma once

#include "jali/backend/cuda/common/word.cuh"
#include "jali/backend/cuda/ntt/stage_groups.cuh"

namespace jali::backend::cuda {

/// How a group reads its twiddles (tables.cuh): as they are; where threads hold neighbouring
/// blocks, leaves side by side for the threads; or the first of them alone, the others computed;
/// the same from a block's own copy.
enum class Twiddles { shared, leaves, computed, fetched };
/// Of such a copy the entries that all blocks have alike: the table's first.
constexpr int kAlike = 16;

// One of kG stages on 2^kG registers: 2^kS butterflies share a twiddle each. twiddles(kS, a) is
// that of group a; in the notation of tables.cuh it is psi^brv(a) times that of group 0. kComputed:
// it is computed so, with psi^brv(a) = twiddles.factor(a). kSmall: the residues are in [0, 2q).
template <class W, bool kInverse, bool kComputed, int kG, int kS, bool kSmall, class Lookup>
__device__ __forceinline__ void stage(typename W::R* x, const Lookup& twiddles,
                                      const typename W::Prime& prime) {
  constexpr int kHalf = (1 << kG) >> (kS + 1);
#pragma unroll
  for (int p = 0; p < (1 << kG) / 2; ++p) {
    const int group = p / kHalf, at = group * 2 * kHalf + p % kHalf;
    const auto f = W::twiddle(twiddles(kS, kComputed ? 0 : group));
    if constexpr (kInverse) {
      W::template inverse_butterfly<kG - 1 - kS, kG>(x[at], x[at + kHalf], f, prime);
      if (kComputed && group > 0) {
        x[at + kHalf] = W::times(x[at + kHalf], W::twiddle(twiddles.factor(group)), prime);
      }
    } else {
      if (kComputed && group > 0) {
        x[at + kHalf] = W::times(x[at + kHalf], W::twiddle(twiddles.factor(group)), prime);
      }
      if constexpr (kSmall) {
        W::first_butterfly(x[at], x[at + kHalf], f, prime);
      } else {
        W::butterfly(x[at], x[at + kHalf], f, prime);
      }
    }
  }
}

// All kG stages of a group. kSmall: a forward group starts from residues in [0, 2q).
template <class W, bool kInverse, bool kComputed, int kG, bool kSmall = false,
          int kS = kInverse ? kG - 1 : 0, class Lookup>
__device__ __forceinline__ void stages(typename W::R* x, const Lookup& twiddles,
                                       const typename W::Prime& prime) {
  stage<W, kInverse, kComputed, kG, kS, kSmall>(x, twiddles, prime);
  if constexpr (!kInverse && kS + 1 < kG) {
    stages<W, false, kComputed, kG, false, kS + 1>(x, twiddles, prime);
  }
  if constexpr (kInverse && kS > 0) {
    stages<W, true, kComputed, kG, false, kS - 1>(x, twiddles, prime);
  }
}

// The entries of a table that nothing writes while the kernel runs. __restrict__ of a parameter
// lets the compiler read them through the read-only path; that of a member does not.
template <class W>
__device__ __forceinline__ typename W::Twiddle entry(const typename W::Twiddle* __restrict__ table,
                                                     int i) {
  return table[i];
}

// The twiddles of a group that starts at stage t of the transform, on that stage's block `node`.
template <class W, Twiddles kFrom>
struct TableTwiddles {
  const typename W::Twiddle* table;
  int t, node;
  __device__ __forceinline__ typename W::Twiddle operator()(int s, int group) const {
    if constexpr (kFrom == Twiddles::fetched) return entry<W>(table, kAlike + (s << t) + node);
    const int first = 1 << (t + s);
    if constexpr (kFrom == Twiddles::shared) return entry<W>(table, first + (node << s) + group);
    return entry<W>(table, first + (group << t) + node);
  }
  __device__ __forceinline__ typename W::Twiddle factor(int group) const {
    return entry<W>(table, group);
  }
};
template <class W, bool kInverse, Twiddles kFrom, int kG>
__device__ __forceinline__ void stages(typename W::R* x, int t, int node,
                                       const typename W::Twiddle* __restrict__ table,
                                       const typename W::Prime& prime) {
  constexpr bool kComputed = kFrom == Twiddles::computed || kFrom == Twiddles::fetched;
  stages<W, kInverse, kComputed, kG>(x, TableTwiddles<W, kFrom>{table, t, node}, prime);
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
