#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/common/reduce.cuh"
#include "jali/backend/cuda/crt/integers.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
__device__ typename W::R negate_if(bool negative, typename W::R x, const typename W::Prime& p) {
  return negative && x != 0 ? p.q - x : x;
}

template <class W>
__global__ void from_int64_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                  typename W::Stored* out, const std::int64_t* c, int log_stride) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const bool between = (k & ((1u << log_stride) - 1)) != 0;  // coefficients that are 0
  const std::size_t first = static_cast<std::size_t>(b) << (s.log_n - log_stride);
  const std::int64_t x = between ? 0 : c[first + (k >> log_stride)];
  const std::uint64_t magnitude = x < 0 ? 0 - static_cast<std::uint64_t>(x) : x;
  const auto r = negate_if<W>(x < 0, from_u64(magnitude, prime), prime);
  out[(static_cast<std::size_t>(blockIdx.y) << s.log_n) + k] = W::store(r, prime);
}

template <class W>
__global__ void from_double_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                   typename W::Stored* out, const double* c) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const double x = c[(static_cast<std::size_t>(b) << s.log_n) + k];
  int exponent = 0;
  const double fraction = frexp(fabs(x), &exponent);
  auto mantissa = static_cast<std::uint64_t>(ldexp(fraction, 53));
  exponent -= 53;
  if (exponent < 0) {
    mantissa = exponent > -64 ? mantissa >> -exponent : 0;
    exponent = 0;
  }
  auto r = from_u64(mantissa, prime);
  if (exponent > 0)
    r = mul_mod<W>(r, power_of_two<W>(static_cast<unsigned>(exponent), prime), prime);
  out[(static_cast<std::size_t>(blockIdx.y) << s.log_n) + k] =
      W::store(negate_if<W>(x < 0, r, prime), prime);
}

dim3 grid_of(const Shape& s, unsigned rows) {
  return dim3(((1u << s.log_n) + kIntegerThreads - 1) / kIntegerThreads, rows);
}

}  // namespace

template <class W>
void from_int64(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                void* out, const std::int64_t* c, int log_stride) {
  from_int64_kernel<W><<<grid_of(s, s.limb_count * s.batch), kIntegerThreads, 0, stream.get()>>>(
      s, limbs, t.primes.template as<typename W::Prime>(), static_cast<typename W::Stored*>(out), c,
      log_stride);
  check_launch(stream, "from_int64");
}

template <class W>
void from_double(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                 void* out, const double* c) {
  from_double_kernel<W><<<grid_of(s, s.limb_count * s.batch), kIntegerThreads, 0, stream.get()>>>(
      s, limbs, t.primes.template as<typename W::Prime>(), static_cast<typename W::Stored*>(out),
      c);
  check_launch(stream, "from_double");
}

#define JALI_INSTANTIATE(W)                                                                        \
  template void from_int64<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*,  \
                              const std::int64_t*, int);                                           \
  template void from_double<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*, \
                               const double*);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
