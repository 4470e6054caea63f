// The negacyclic transform on the GPU: what the rest of the engine calls. transform (transform.cuh)
// is the same with the first reading and the last writing of every residue in the caller's hands.
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
