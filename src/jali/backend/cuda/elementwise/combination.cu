// A thread computes sixteen bytes of every part of the sum.
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/elementwise/combination.cuh"
#include "jali/backend/cuda/ntt/tile.cuh"

namespace jali::backend::cuda {

namespace {

template <class W, bool kThree>
__global__ void __launch_bounds__(kBlockThreads)
    combine_kernel(Shape s, Limbs limbs, const typename W::Prime* primes, typename W::Stored* d0,
                   typename W::Stored* d1, typename W::Stored* d2,
                   const __grid_constant__ CombinationTerms<W> c) {
  using V = Vector<W>;
  constexpr unsigned kV = V::kSize;
  const unsigned limb = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const unsigned k = (blockIdx.x * blockDim.x + threadIdx.x) * kV;
  const std::size_t at = (static_cast<std::size_t>(blockIdx.y) << s.log_n) + k;
  const auto read = [&](const typename W::Stored* from, unsigned limb_there) {
    return *reinterpret_cast<const V*>(
        from + ((static_cast<std::size_t>(limb_there) * s.batch + b) << s.log_n) + k);
  };
  const typename W::Prime prime = primes[limbs.prime[limb]];
  typename W::Sum s0[kV], s1[kV], s2[kV];
  const auto fold = [&](typename W::Sum(&sum)[kV]) {
#pragma unroll
    for (unsigned i = 0; i < kV; ++i) sum[i] = W::sum_of(W::total(sum[i], prime));
  };
  const auto begin = [&](const typename W::Stored* d, typename W::Sum(&sum)[kV]) {
    const V v = *reinterpret_cast<const V*>(d + at);
#pragma unroll
    for (unsigned i = 0; i < kV; ++i) sum[i] = W::sum_of(W::load(v.v[i]));
  };
  after_predecessor();
  if (c.accumulate) {
    begin(d0, s0), begin(d1, s1);
    if constexpr (kThree) begin(d2, s2);
  } else {
#pragma unroll
    for (unsigned i = 0; i < kV; ++i) s0[i] = W::sum_of(W::load(c.constant[limb]));
  }
  int room = W::kTerms - 1;  // products that a sum takes before it is folded
  if constexpr (kThree) {
#pragma unroll 1
    for (int j = 0; j < c.products; ++j) {
      const V a0 = read(c.a0[j], c.at_a[j][limb]), a1 = read(c.a1[j], c.at_a[j][limb]);
      const V b0 = read(c.b0[j], c.at_b[j][limb]), b1 = read(c.b1[j], c.at_b[j][limb]);
      if (room < 2) {
        fold(s0), fold(s1), fold(s2);
        room = W::kTerms - 1;
      }
      room -= 2;
      const bool twice = c.twice >> j & 1;
#pragma unroll
      for (unsigned i = 0; i < kV; ++i) {
        auto x0 = W::load(a0.v[i]), x1 = W::load(a1.v[i]);
        const auto y0 = W::load(b0.v[i]), y1 = W::load(b1.v[i]);
        if (twice) x0 = W::add_mod(x0, x0, prime), x1 = W::add_mod(x1, x1, prime);
        W::add(s0[i], x0, y0, prime);
        W::add(s1[i], x0, y1, prime);
        W::add(s1[i], x1, y0, prime);
        W::add(s2[i], x1, y1, prime);
      }
    }
  }
#pragma unroll 1
  for (int j = 0; j < c.multiples; ++j) {
    const V x0 = read(c.x0[j], c.at_x[j][limb]), x1 = read(c.x1[j], c.at_x[j][limb]);
    const auto factor = W::load(c.s[j][limb]);
    if (room == 0) {
      fold(s0), fold(s1);
      room = W::kTerms - 1;
    }
    --room;
#pragma unroll
    for (unsigned i = 0; i < kV; ++i) {
      add_scaled<W>(s0[i], s1[i], W::load(x0.v[i]), W::load(x1.v[i]), factor, prime);
    }
  }
  const auto finish = [&](typename W::Stored* d, const typename W::Sum(&sum)[kV]) {
    V v;
#pragma unroll
    for (unsigned i = 0; i < kV; ++i) v.v[i] = W::canonical(W::total(sum[i], prime));
    *reinterpret_cast<V*>(d + at) = v;
  };
  finish(d0, s0), finish(d1, s1);
  if constexpr (kThree) finish(d2, s2);
}

}  // namespace

template <class W>
void combine(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs, void* d0,
             void* d1, void* d2, const CombinationTerms<W>& c) {
  using Stored = typename W::Stored;
  const unsigned vectors = (1u << s.log_n) / Vector<W>::kSize;
  const unsigned threads = vectors < kBlockThreads ? vectors : kBlockThreads;
  auto* kernel = c.three ? combine_kernel<W, true> : combine_kernel<W, false>;
  launch(stream, "combine", kernel, dim3(vectors / threads, s.limb_count * s.batch), threads, 0, 1,
         s, limbs, t.primes.template as<typename W::Prime>(), static_cast<Stored*>(d0),
         static_cast<Stored*>(d1), static_cast<Stored*>(d2), c);
}

#define JALI_INSTANTIATE(W)                                                                    \
  template void combine<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*, \
                           void*, void*, const CombinationTerms<W>&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
