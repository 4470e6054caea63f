// CRT-MOD of GIF-FHE, section V: an integer of several words modulo q, from its highest word down,
//   r = (r 2^64 + word) mod q.
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/variants/crt_variants.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
__global__ void horner_crt_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                  typename W::Stored* out, const std::uint64_t* integers,
                                  unsigned words) {
  after_predecessor();
  const unsigned t = blockIdx.z, b = blockIdx.y;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t stride = static_cast<std::size_t>(s.batch) << s.log_n;
  const auto beta = power_of_two<W>(64, prime);
  typename W::R sum = from_u64(0, prime);
  for (unsigned w = words; w-- > 0;) {
    typename W::Sum step = W::sum_of(from_u64(integers[w * stride + at], prime));
    W::add(step, sum, beta, prime);
    sum = W::total(step, prime);
  }
  out[t * stride + at] = W::store(sum, prime);
}

}  // namespace

template <class W>
void crt_by_horner(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                   void* out, const std::uint64_t* integers, unsigned words) {
  launch(stream, "crt", horner_crt_kernel<W>,
         dim3((1u << s.log_n) / kIntegerThreads, s.batch, s.limb_count), kIntegerThreads, 0, 1, s,
         limbs, t.primes.template as<typename W::Prime>(), static_cast<typename W::Stored*>(out),
         integers, words);
}

#define JALI_INSTANTIATE(W)                                                                   \
  template void crt_by_horner<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, \
                                 void*, const std::uint64_t*, unsigned);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
