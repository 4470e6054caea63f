// ntt and intt from and to a block, compiled a file a word.
#pragma once

#include "jali/backend/cuda/ntt_transform.cuh"

namespace jali::backend::cuda {

template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  transform<W, false>(stream, tables, ReadBlock<W>{data}, WriteBlock<W>{data}, data, limbs,
                      limb_count, batch, log_n);
}
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  transform<W, true>(stream, tables, ReadBlock<W>{data}, WriteBlock<W>{data}, data, limbs,
                     limb_count, batch, log_n);
}

#define JALI_INSTANTIATE_NTT(W)                                                              \
  template void ntt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned,  \
                       unsigned, int);                                                       \
  template void intt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned, \
                        unsigned, int);

}  // namespace jali::backend::cuda
