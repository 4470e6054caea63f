// Which kernel transforms rows of N = 2^log_n, and what follows from it for the tables.
#pragma once

#include <type_traits>

#include "jali/backend/cuda/common/word.cuh"
#include "jali/backend/cuda/ntt/stage_groups.cuh"

namespace jali::backend::cuda {

/// In the order of their names in cuda_variants.
enum class NttVariant {
  automatic,
  two_pass,  // two_pass.cuh, from N = 2^14 on
  cluster,      // one_pass.cuh: a row in the registers of a block or of a cluster of blocks
  on_the_fly,   // the same with the last twiddles computed: one more product in place of a load
  dense,        // variants/dense_ntt.cu: two matrix products on CUDA cores
  tensor,       // variants/tensor_ntt.cu: the same on INT8 tensor cores; w32
};

constexpr int kTwoPassFrom = 14;

/// Shape of the kernel of one pass, as powers of two: residues a thread holds, threads an SM, blocks a
/// row; kComputed: for twiddles computed on the fly. What was fastest on an H100.
template <class W, bool kComputed>
struct RowChoice {
  static constexpr bool kNarrow = sizeof(typename W::R) == 4;
  static constexpr int held(int log_n) {
    if (!kNarrow) return log_n >= (std::is_same_v<W, W52> ? 13 : 14) ? 5 : 3;
    return log_n == 17 ? 6 : kComputed || log_n >= 13 ? 5 : 4;
  }
  static constexpr int per_sm(int log_n) {
    if (!kNarrow) return held(log_n) == 3 ? 1024 : 512;
    return log_n == 17 ? 512 : !kComputed && (log_n == 13 || log_n == 15) ? 768 : 1024;
  }
  static constexpr int log_blocks(int log_n) {
    return log_n <= 13 ? 0 : log_n == 14 ? (kNarrow ? 0 : 1) : 3;
  }
};
/// Up to so many rows, a row is more blocks (as a power of two), of 16 residues a thread where they are of 32 bits: most of
/// the GPU would be idle else.
template <int kLogN>
constexpr unsigned kFewRows = kLogN == 16 ? 64 : 48;
template <int kLogN, bool kNarrow>
constexpr int kFewBlocks = kLogN == 16               ? 4
                           : kLogN == 13 && !kNarrow ? 2
                                                     : 3;

/// The engine's own choice, as measured there: computing twiddles pays where loads of 32-bit words bind;
/// at 2^17 rows of 64-bit words leave an SM one block.
template <class W>
constexpr NttVariant own_choice(int log_n) {
  if (std::is_same_v<W, W64> && log_n == 17) return NttVariant::two_pass;
  return sizeof(typename W::R) == 4 && log_n <= 16 ? NttVariant::on_the_fly : NttVariant::cluster;
}

/// Residues a thread holds in the kernels of two passes, as a power of two: what 64 registers have room
/// for.
template <class W>
constexpr int kPassHeld = sizeof(typename W::R) == 4 ? 4 : 3;
/// Stages of the pass over contiguous tiles.
__host__ __device__ constexpr int contiguous_stages(int log_n) {
  return log_n <= 14 ? 7 : log_n == 17 ? 9 : 8;
}

/// Stages of the last group of a variant's kernels.
template <class W>
constexpr int leaf_stages(NttVariant variant, int log_n) {
  return variant == NttVariant::two_pass && log_n >= kTwoPassFrom
             ? last_group_size(contiguous_stages(log_n), kPassHeld<W>)
         : variant == NttVariant::on_the_fly
             ? last_group_size(log_n, RowChoice<W, true>::held(log_n))
             : last_group_size(log_n, RowChoice<W, false>::held(log_n));
}

/// The kernels of butterflies behind a choice on a GPU of this compute capability: of transforms with a
/// caller's load and store always, of the others but for matrix products. Clusters need 9; 12 has 99 KB of
/// shared memory for a block, where an eighth of 2^17 64-bit residues takes 147.
template <class W>
constexpr NttVariant butterflies(NttVariant chosen, int log_n, int capability) {
  const bool too_large = capability >= 12 && sizeof(typename W::R) == 8 && log_n == 17;
  if (chosen == NttVariant::two_pass || capability < 9 || too_large) return NttVariant::two_pass;
  return chosen == NttVariant::cluster || chosen == NttVariant::on_the_fly ? chosen
                                                                           : own_choice<W>(log_n);
}

}  // namespace jali::backend::cuda
