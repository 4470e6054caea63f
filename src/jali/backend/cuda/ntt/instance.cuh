// ntt and intt from and to a block, compiled a file a word.
#pragma once

#include "jali/backend/cuda/ntt/other_transform.cuh"
#include "jali/backend/cuda/ntt/transform.cuh"

namespace jali::backend::cuda {

template <class W>
void run_other(const Stream& stream, const Tables<W>& tables, bool inverse,
               typename W::Stored* data, const Limbs& limbs, unsigned limb_count, unsigned batch,
               int log_n) {
  if (limb_count == 0) return;
  tables.other->run(stream, tables.primes.template as<typename W::Prime>(), inverse, data, limbs,
                    limb_count, batch, log_n);
}

template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (tables.other) {
    return run_other<W>(stream, tables, false, data, limbs, limb_count, batch, log_n);
  }
  transform<W, false>(stream, tables, ReadBlock<W>{data}, WriteBlock<W>{data}, data, limbs,
                      limb_count, batch, log_n);
}
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (tables.other) {
    return run_other<W>(stream, tables, true, data, limbs, limb_count, batch, log_n);
  }
  transform<W, true>(stream, tables, ReadBlock<W>{data}, WriteBlock<W>{data}, data, limbs,
                     limb_count, batch, log_n);
}

#define JALI_INSTANTIATE_NTT(W)                                                              \
  template void ntt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned,  \
                       unsigned, int);                                                       \
  template void intt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned, \
                        unsigned, int);

}  // namespace jali::backend::cuda
