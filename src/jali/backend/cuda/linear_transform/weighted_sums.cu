// A thread computes one residue of up to kMaxSums sums of a launch.
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/linear_transform/weighted_sums.cuh"

namespace jali::backend::cuda {

namespace {

template <class W, int kSums, class C>
__global__ void __launch_bounds__(kBlockThreads)
    weighted_sums_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                         const __grid_constant__ C c) {
  using Stored = typename W::Stored;
  constexpr bool kMany = C::kMost > kSums;
  const int first = kMany ? blockIdx.z * kSums : 0;
  const unsigned limb = blockIdx.y / s.batch, k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(blockIdx.y) << s.log_n) + k;
  const std::size_t shared = (static_cast<std::size_t>(limb) << s.log_n) + k;
  const typename W::Prime prime = primes[limbs.prime[limb]];
  after_predecessor();
  typename W::Sum s0[kSums], s1[kSums];
#pragma unroll
  for (int g = 0; g < kSums; ++g) {
    if (first + g < c.sums && (c.accumulate >> (first + g) & 1)) {
      s0[g] = W::sum_of(W::load(static_cast<const Stored*>(c.out0[first + g])[at]));
      s1[g] = W::sum_of(W::load(static_cast<const Stored*>(c.out1[first + g])[at]));
    }
  }
  int room = W::kTerms - 1;
  for (int i = 0; i < c.columns; ++i) {
    const auto x0 = W::load(static_cast<const Stored*>(c.a0[i])[at]);
    const auto x1 = W::load(static_cast<const Stored*>(c.a1[i])[at]);
    typename W::R y[kSums];
#pragma unroll
    for (int g = 0; g < kSums; ++g) {
      const auto* b = static_cast<const Stored*>(c.b[i][first + g]);
      const std::size_t from = c.broadcast[i] >> (first + g) & 1 ? shared : at;
      // Weights of many sums are read once, and must not push the operands out of L2.
      y[g] = b ? W::load(kMany ? __ldcs(b + from) : b[from]) : 0;
    }
    if (room == 0) {
#pragma unroll
      for (int g = 0; g < kSums; ++g) {
        s0[g] = W::sum_of(W::total(s0[g], prime));
        s1[g] = W::sum_of(W::total(s1[g], prime));
      }
      room = W::kTerms - 1;
    }
#pragma unroll
    for (int g = 0; g < kSums; ++g) {
      W::add(s0[g], x0, y[g], prime);
      W::add(s1[g], x1, y[g], prime);
    }
    --room;
  }
#pragma unroll
  for (int g = 0; g < kSums; ++g) {
    if (first + g < c.sums) {
      static_cast<Stored*>(c.out0[first + g])[at] = W::canonical(W::total(s0[g], prime));
      static_cast<Stored*>(c.out1[first + g])[at] = W::canonical(W::total(s1[g], prime));
    }
  }
}

}  // namespace

template <class W>
void weighted_sums(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                   const Columns& columns) {
  const unsigned n = 1u << s.log_n, threads = n < kBlockThreads ? n : kBlockThreads;
  const dim3 grid(n / threads, s.limb_count * s.batch);
  const auto launch = [&](auto* kernel) {
    cuda::launch(stream, "weighted_sums", kernel, grid, threads, 0, 1, s, limbs,
                 t.primes.template as<typename W::Prime>(), columns);
  };
  if (columns.sums == 1) {
    launch(weighted_sums_kernel<W, 1, Columns>);
  } else if (columns.sums == 2) {
    launch(weighted_sums_kernel<W, 2, Columns>);
  } else if (columns.sums <= 4) {
    launch(weighted_sums_kernel<W, 4, Columns>);
  } else {
    launch(weighted_sums_kernel<W, 8, Columns>);
  }
}

template <class W>
void weighted_sums(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                   const ManyColumns& columns) {
  const unsigned n = 1u << s.log_n, threads = n < kBlockThreads ? n : kBlockThreads;
  const dim3 grid(n / threads, s.limb_count * s.batch, (columns.sums + kMaxSums - 1) / kMaxSums);
  cuda::launch(stream, "weighted_sums", weighted_sums_kernel<W, kMaxSums, ManyColumns>, grid,
               threads, 0, 1, s, limbs, t.primes.template as<typename W::Prime>(), columns);
}

#define JALI_INSTANTIATE(W)                                                                   \
  template void weighted_sums<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, \
                                 const Columns&);                                             \
  template void weighted_sums<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, \
                                 const ManyColumns&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
