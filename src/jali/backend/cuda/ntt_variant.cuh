// Which kernel transforms rows of N = 2^log_n, and what follows from it for the tables.
#pragma once

#include "jali/backend/cuda/ntt_groups.cuh"

namespace jali::backend::cuda {

/// In the order of their names in cuda_variants.
enum class NttVariant {
  automatic,
  two_pass,  // ntt_two_pass.cuh, from N = 2^14 on
  cluster,   // ntt_row.cuh
};

constexpr int kTwoPassFrom = 14;

/// Shape of the kernel of one pass, as powers of two: residues a thread holds, threads an SM, blocks a row.
template <class W>
struct RowChoice {
  static constexpr bool kNarrow = sizeof(typename W::R) == 4;
  static constexpr int held(int log_n) {
    return kNarrow && (log_n == 13 || log_n == 14 || log_n == 15) ? 5 : 4;
  }
  static constexpr int per_sm(int log_n) { return !kNarrow ? 512 : held(log_n) == 4 ? 1024 : 768; }
  static constexpr int log_blocks(int log_n) {
    return log_n <= 13 ? 0 : log_n == 17 ? 3 : log_n - 13;
  }
};

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
             : last_group_size(log_n, RowChoice<W>::held(log_n));
}

/// What stands behind a choice on a GPU: clusters need compute capability 9.
NttVariant resolve(NttVariant chosen, int device);

}  // namespace jali::backend::cuda
