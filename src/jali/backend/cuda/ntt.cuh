// The negacyclic transform on the GPU: what the rest of the engine calls. transform (ntt_transform.cuh)
// is the same with the first reading and the last writing of every residue in the caller's hands.
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

/// rows = limbs * batch contiguous rows of N = 2^log_n, in place.
template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n);
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n);

}  // namespace jali::backend::cuda
