// The negacyclic transform on the GPU, in place. transform (transform.cuh) is the same with a load
// and a store of the caller's.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

/// rows = limbs * batch contiguous rows of N = 2^log_n, in place.
template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n);
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n);

}  // namespace jali::backend::cuda
