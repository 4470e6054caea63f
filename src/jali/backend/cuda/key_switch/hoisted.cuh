// The key product of digits that are already in NTT form, for hoisting: one ModUp serves many
// rotations.
#pragma once

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

/// acc_c = [acc_c +] sum_j sigma_g(ext_j) key[ids[j]][c]; ext: (digit, limb, batch, N); key:
/// (digit, 2, limb, N).
struct Digits {
  std::uint32_t id[kMaxLimbs];
  int count;
  unsigned limbs;  // of the key
  Limbs limb;  // of the key, by limb of acc
};
template <class W>
void hoisted_key_product(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* acc0,
                         void* acc1, const void* ext, const void* key, const Digits&,
                         std::uint64_t g, bool accumulate);

}  // namespace jali::backend::cuda
