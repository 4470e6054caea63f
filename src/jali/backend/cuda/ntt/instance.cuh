// ntt and intt from and to a block, compiled a file a word.
#pragma once

#include "jali/backend/cuda/ntt/transform.cuh"
#include "jali/backend/cuda/variants/dense_ntt.cuh"

namespace jali::backend::cuda {

/// Launches matrix products where they were chosen, and says so.
template <class W, bool kInverse>
bool launch_products(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
                     const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (!tables.dense || limb_count == 0) return false;
  if constexpr (std::is_same_v<W, W32>) {
    if (tables.dense->tensor) {
      tensor_ntt<kInverse>(stream, tables, data, limbs, limb_count, batch, log_n);
      return true;
    }
  }
  dense_ntt<W, kInverse>(stream, tables, data, limbs, limb_count, batch, log_n);
  return true;
}

template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (launch_products<W, false>(stream, tables, data, limbs, limb_count, batch, log_n)) return;
  transform<W, false>(stream, tables, ReadBlock<W>{data}, WriteBlock<W>{data}, data, limbs,
                      limb_count, batch, log_n);
}
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (launch_products<W, true>(stream, tables, data, limbs, limb_count, batch, log_n)) return;
  transform<W, true>(stream, tables, ReadBlock<W>{data}, WriteBlock<W>{data}, data, limbs,
                     limb_count, batch, log_n);
}

#define JALI_INSTANTIATE_NTT(W)                                                              \
  template void ntt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned,  \
                       unsigned, int);                                                       \
  template void intt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned, \
                        unsigned, int);

}  // namespace jali::backend::cuda
