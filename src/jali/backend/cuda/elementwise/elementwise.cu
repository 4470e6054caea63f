#include "jali/backend/cuda/common/row_threads.cuh"
#include "jali/backend/cuda/common/source.cuh"
#include "jali/backend/cuda/elementwise/elementwise.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
__global__ void negate_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                              typename W::Stored* out, const typename W::Stored* a) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const auto x = W::load(a[p.at]);
  out[p.at] = W::store(x == 0 ? x : prime.q - x, prime);
}

template <class W, Binary kOp>
__global__ void binary_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                              typename W::Stored* out, const typename W::Stored* a,
                              const typename W::Stored* b, bool b_broadcast) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const auto x = W::load(a[p.at]), y = W::load(b[b_broadcast ? p.broadcast : p.at]);
  typename W::R r;
  if constexpr (kOp == Binary::add) r = W::add_mod(x, y, prime);
  if constexpr (kOp == Binary::sub) r = W::sub_mod(x, y, prime);
  if constexpr (kOp == Binary::mul) r = mul_mod<W>(x, y, prime);
  out[p.at] = W::store(r, prime);
}

template <class W, ByScalar kOp>
__global__ void scalar_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                              typename W::Stored* out, const typename W::Stored* a,
                              Scalars<W> scalars) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const auto x = W::load(a[p.at]);
  const auto y = W::load(scalars.s[p.limb]);
  typename W::R r;
  if constexpr (kOp == ByScalar::add) r = W::add_mod(x, y, prime);
  if constexpr (kOp == ByScalar::mul) r = mul_mod<W>(x, y, prime);
  if constexpr (kOp == ByScalar::mul_add) {
    typename W::Sum sum = W::sum_of(W::load(out[p.at]));
    W::add(sum, x, y, prime);
    r = W::total(sum, prime);
  }
  out[p.at] = W::store(r, prime);
}

template <class W>
__global__ void inner_product_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                     typename W::Stored* out, Terms terms, bool accumulate) {
  using Stored = typename W::Stored;
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  typename W::Sum sum;
  if (accumulate) sum = W::sum_of(W::load(out[p.at]));
  int room = W::kTerms - 1;
  for (int t = 0; t < terms.count; ++t) {
    const auto x = W::load(static_cast<const Stored*>(terms.a[t])[p.at]);
    const auto y =
        W::load(static_cast<const Stored*>(terms.b[t])[terms.b_broadcast[t] ? p.broadcast : p.at]);
    if (room == 0) {
      sum = W::sum_of(W::total(sum, prime));
      room = W::kTerms - 1;
    }
    W::add(sum, x, y, prime);
    --room;
  }
  out[p.at] = W::canonical(W::total(sum, prime));
}

template <class W>
__global__ void tensor_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                              typename W::Stored* d0, typename W::Stored* d1,
                              typename W::Stored* d2, const typename W::Stored* a0,
                              const typename W::Stored* a1, const typename W::Stored* b0,
                              const typename W::Stored* b1) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const auto x0 = W::load(a0[p.at]), x1 = W::load(a1[p.at]);
  const auto y0 = W::load(b0[p.at]), y1 = W::load(b1[p.at]);
  typename W::Sum cross;
  W::add(cross, x0, y1, prime);
  W::add(cross, x1, y0, prime);
  d0[p.at] = W::canonical(mul_mod<W>(x0, y0, prime));
  d1[p.at] = W::canonical(W::total(cross, prime));
  d2[p.at] = W::canonical(mul_mod<W>(x1, y1, prime));
}

template <class W>
__global__ void automorphism_kernel(Shape s, typename W::Stored* out, const typename W::Stored* in,
                                    std::uint64_t g) {
  const Place p = place(s);
  out[p.at] = in[p.at - p.k + source_ntt(p.k, g, s.log_n)];
}

template <class W>
const typename W::Stored* in(const void* p) {
  return static_cast<const typename W::Stored*>(p);
}
template <class W>
typename W::Stored* out_(void* p) {
  return static_cast<typename W::Stored*>(p);
}

}  // namespace

template <class W>
void negate(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs, void* out,
            const void* a) {
  launch(stream, "neg", negate_kernel<W>, grid_of(s), threads_of(s), 0, 1, s, limbs,
         t.primes.template as<typename W::Prime>(), out_<W>(out), in<W>(a));
}

template <class W>
void binary(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs, Binary op,
            void* out, const void* a, const void* b, bool b_broadcast) {
  const auto launch = [&](auto* kernel) {
    cuda::launch(stream, "element-wise operation", kernel, grid_of(s), threads_of(s), 0, 1, s,
                 limbs, t.primes.template as<typename W::Prime>(), out_<W>(out), in<W>(a), in<W>(b),
                 b_broadcast);
  };
  switch (op) {
    case Binary::add: launch(binary_kernel<W, Binary::add>); break;
    case Binary::sub: launch(binary_kernel<W, Binary::sub>); break;
    case Binary::mul: launch(binary_kernel<W, Binary::mul>); break;
  }
}

template <class W>
void by_scalar(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
               ByScalar op, void* out, const void* a, const Scalars<W>& scalars) {
  const auto launch = [&](auto* kernel) {
    cuda::launch(stream, "operation with scalars", kernel, grid_of(s), threads_of(s), 0, 1, s,
                 limbs, t.primes.template as<typename W::Prime>(), out_<W>(out), in<W>(a), scalars);
  };
  switch (op) {
    case ByScalar::add: launch(scalar_kernel<W, ByScalar::add>); break;
    case ByScalar::mul: launch(scalar_kernel<W, ByScalar::mul>); break;
    case ByScalar::mul_add: launch(scalar_kernel<W, ByScalar::mul_add>); break;
  }
}

template <class W>
void inner_product(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                   void* out, const Terms& terms, bool accumulate) {
  launch(stream, "inner_product", inner_product_kernel<W>, grid_of(s), threads_of(s), 0, 1, s,
         limbs, t.primes.template as<typename W::Prime>(), out_<W>(out), terms, accumulate);
}

template <class W>
void tensor(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs, void* d0,
            void* d1, void* d2, const void* a0, const void* a1, const void* b0, const void* b1) {
  launch(stream, "tensor", tensor_kernel<W>, grid_of(s), threads_of(s), 0, 1, s, limbs,
         t.primes.template as<typename W::Prime>(), out_<W>(d0), out_<W>(d1), out_<W>(d2),
         in<W>(a0), in<W>(a1), in<W>(b0), in<W>(b1));
}

template <class W>
void automorphism(const Stream& stream, const Shape& s, void* out, const void* from,
                  std::uint64_t g) {
  launch(stream, "automorphism", automorphism_kernel<W>, grid_of(s), threads_of(s), 0, 1, s,
         out_<W>(out), in<W>(from), g);
}

#define JALI_INSTANTIATE(W)                                                                    \
  template void negate<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*,  \
                          const void*);                                                        \
  template void binary<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, Binary, \
                          void*, const void*, const void*, bool);                              \
  template void by_scalar<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&,      \
                             ByScalar, void*, const void*, const Scalars<W>&);                 \
  template void inner_product<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&,  \
                                 void*, const Terms&, bool);                                   \
  template void tensor<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*,  \
                          void*, void*, const void*, const void*, const void*, const void*);   \
  template void automorphism<W>(const Stream&, const Shape&, void*, const void*, std::uint64_t);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
