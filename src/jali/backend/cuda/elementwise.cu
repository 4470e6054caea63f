// One thread a residue; rows in blockIdx.y, so that a warp reads consecutive words.
#include "jali/backend/cuda/elementwise.cuh"
#include "jali/backend/cuda/launch.cuh"
#include "jali/backend/cuda/tile.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kThreads = 256;

dim3 grid_of(const Shape& s) {
  const unsigned n = 1u << s.log_n;
  return dim3(n < kThreads ? 1 : n / kThreads, s.limb_count * s.batch);
}
unsigned threads_of(const Shape& s) {
  return (1u << s.log_n) < kThreads ? 1u << s.log_n : kThreads;
}

/// Where a thread works, which it may from here on.
struct Place {
  unsigned limb, b, k;
  std::size_t at;         // in a block of the full batch
  std::size_t broadcast;  // in a block of batch 1
};
__device__ inline Place place(const Shape& s) {
  after_predecessor();
  Place p;
  p.limb = blockIdx.y / s.batch;
  p.b = blockIdx.y % s.batch;
  p.k = blockIdx.x * blockDim.x + threadIdx.x;
  p.at = (static_cast<std::size_t>(blockIdx.y) << s.log_n) + p.k;
  p.broadcast = (static_cast<std::size_t>(p.limb) << s.log_n) + p.k;
  return p;
}

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
  if constexpr (kOp == Binary::mul_add) {
    typename W::Sum sum = W::sum_of(W::load(out[p.at]));
    W::add(sum, x, y, prime);
    r = W::total(sum, prime);
  }
  out[p.at] = W::store(r, prime);
}

template <class W, ByScalar kOp>
__global__ void scalar_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                              typename W::Stored* out, const typename W::Stored* a,
                              Scalars scalars) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const auto x = W::load(a[p.at]);
  const auto y = W::load(static_cast<typename W::Stored>(scalars.s[p.limb]));
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
__global__ void automorphism_ntt_kernel(Shape s, typename W::Stored* out,
                                        const typename W::Stored* in, std::uint64_t g) {
  const Place p = place(s);
  out[p.at] = in[p.at - p.k + source_ntt(p.k, g, s.log_n)];
}

template <class W>
__global__ void automorphism_coeff_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                          typename W::Stored* out, const typename W::Stored* in,
                                          std::uint64_t g) {
  // X^k -> X^(k g mod 2N), X^N = -1
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const unsigned n = 1u << s.log_n;
  const unsigned e = static_cast<unsigned>((p.k * g) & (2ull * n - 1));
  auto x = W::load(in[p.at]);
  if (e >= n && x != 0) x = prime.q - x;
  out[p.at - p.k + (e & (n - 1))] = W::store(x, prime);
}

template <class W>
__global__ void key_product_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                   typename W::Stored* acc0, typename W::Stored* acc1,
                                   const typename W::Stored* ext, const typename W::Stored* key,
                                   Digits digits, std::uint64_t g, bool accumulate) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const std::size_t n = std::size_t{1} << s.log_n;
  const std::size_t block = static_cast<std::size_t>(s.limb_count) * s.batch * n;
  const std::size_t from = p.at - p.k + (g == 1 ? p.k : source_ntt(p.k, g, s.log_n));
  typename W::Sum s0, s1;
  if (accumulate) {
    s0 = W::sum_of(W::load(acc0[p.at]));
    s1 = W::sum_of(W::load(acc1[p.at]));
  }
  int room = W::kTerms - 1;
  for (int j = 0; j < digits.count; ++j) {
    const auto x = W::load(ext[j * block + from]);
    const auto* row =
        key + ((2ull * digits.id[j] * digits.limbs + digits.limb.prime[p.limb]) << s.log_n) + p.k;
    const auto k0 = W::load(row[0]), k1 = W::load(row[digits.limbs * n]);
    if (room == 0) {
      s0 = W::sum_of(W::total(s0, prime));
      s1 = W::sum_of(W::total(s1, prime));
      room = W::kTerms - 1;
    }
    W::add(s0, x, k0, prime);
    W::add(s1, x, k1, prime);
    --room;
  }
  acc0[p.at] = W::canonical(W::total(s0, prime));
  acc1[p.at] = W::canonical(W::total(s1, prime));
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
    case Binary::mul_add: launch(binary_kernel<W, Binary::mul_add>); break;
  }
}

template <class W>
void by_scalar(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
               ByScalar op, void* out, const void* a, const Scalars& scalars) {
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
void automorphism(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                  bool ntt_form, void* out, const void* from, std::uint64_t g) {
  if (ntt_form) {
    launch(stream, "automorphism", automorphism_ntt_kernel<W>, grid_of(s), threads_of(s), 0, 1, s,
           out_<W>(out), in<W>(from), g);
  } else {
    launch(stream, "automorphism", automorphism_coeff_kernel<W>, grid_of(s), threads_of(s), 0, 1, s,
           limbs, t.primes.template as<typename W::Prime>(), out_<W>(out), in<W>(from), g);
  }
}

template <class W>
void key_product(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                 void* acc0, void* acc1, const void* ext, const void* key, const Digits& digits,
                 std::uint64_t g, bool accumulate) {
  launch(stream, "key_product", key_product_kernel<W>, grid_of(s), threads_of(s), 0, 1, s, limbs,
         t.primes.template as<typename W::Prime>(), out_<W>(acc0), out_<W>(acc1), in<W>(ext),
         in<W>(key), digits, g, accumulate);
}

#define JALI_INSTANTIATE(W)                                                                        \
  template void negate<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*,      \
                          const void*);                                                            \
  template void binary<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, Binary,     \
                          void*, const void*, const void*, bool);                                  \
  template void by_scalar<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&,          \
                             ByScalar, void*, const void*, const Scalars&);                        \
  template void inner_product<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&,      \
                                 void*, const Terms&, bool);                                       \
  template void tensor<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*,      \
                          void*, void*, const void*, const void*, const void*, const void*);       \
  template void automorphism<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, bool, \
                                void*, const void*, std::uint64_t);                                \
  template void key_product<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*, \
                               void*, const void*, const void*, const Digits&, std::uint64_t,      \
                               bool);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
