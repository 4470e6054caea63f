// Which kernel transforms rows of N = 2^log_n, and what follows from it for the tables.
#pragma once

#include <type_traits>

#include "jali/backend/cuda/common/launch_choices.cuh"
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

/// The engine's own choice (measured, as launch_choices.cuh): computing twiddles pays if loads of
/// 32-bit words are the bound; at 2^17 rows of 64-bit words leave an SM one block.
template <class W>
constexpr NttVariant own_choice(int log_n) {
  if (std::is_same_v<W, W64> && log_n == 17) return NttVariant::two_pass;
  return sizeof(typename W::R) == 4 && log_n <= 16 ? NttVariant::on_the_fly : NttVariant::cluster;
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

/// The kernels of butterflies behind a choice on a GPU of this compute capability: of transforms
/// with a caller's load and store always, of the others but for matrix products. Clusters need 9;
/// 12 has 99 KB of shared memory for a block, where an eighth of 2^17 64-bit residues takes 147.
template <class W>
constexpr NttVariant butterflies(NttVariant chosen, int log_n, int capability) {
  const bool too_large = capability >= 12 && sizeof(typename W::R) == 8 && log_n == 17;
  if (chosen == NttVariant::two_pass || capability < 9 || too_large) return NttVariant::two_pass;
  return chosen == NttVariant::cluster || chosen == NttVariant::on_the_fly ? chosen
                                                                           : own_choice<W>(log_n);
}

}  // namespace jali::backend::cuda
