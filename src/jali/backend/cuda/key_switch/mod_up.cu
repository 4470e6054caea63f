// ModUp for its own sake (hoisting): the second pass of the digits' transforms, and a copy of each
// digit's own limbs.
#include "jali/backend/cuda/key_switch/key_product_kernel.cuh"

namespace jali::backend::cuda {

namespace {

template <class W, int kM, int kX, bool kDirect>
__global__ void __launch_bounds__(TilePass<W, kM, kX, false>::kThreads)
    mod_up_kernel(Rows<W> s, typename W::Stored* ext, const __grid_constant__ Source source) {
  using T = TilePass<W, kM, kX, false>;
  extern __shared__ __align__(16) unsigned char memory[];
  const unsigned target = blockIdx.z % s.targets.count, digit = blockIdx.z / s.targets.count;
  const unsigned index = s.targets.prime.prime[target];
  const typename W::Prime prime = s.primes[index];
  const T t{reinterpret_cast<typename W::R*>(memory),
            threadIdx.x,
            blockIdx.y,
            s.log_n,
            s.log_n - kM,
            s.twiddles + (static_cast<std::size_t>(index) << s.log_n),
            prime};
  auto* out = ext + ((static_cast<std::size_t>(blockIdx.z) * s.rows + blockIdx.x) << s.log_n);
  after_predecessor();
  if (is_own(s.targets, target, s.table, digit)) {
    source.template reading<W>(
        s.targets.position.prime[target], blockIdx.x, s.log_n, prime, [&](const auto& read) {
          constexpr unsigned kV = Vector<W>::kSize;
          typename W::R x[T::kHeld / kV][kV];
          t.each_vector([&](unsigned e, unsigned i) { read(t.place(i), x[e]); });
          t.each_vector(
              [&](unsigned e, unsigned i) { write_words<W, kV>(out + t.place(i), x[e], prime); });
        });
    return;
  }
  typename W::R x[T::kHeld];
  mod_up_tile<W, kDirect>(t, s, digit, target, blockIdx.x, out, x);
  t.template put<T::kLast>(x);
  __syncthreads();
  t.each_vector([&](unsigned, unsigned i) {
    Vector<W> v;
#pragma unroll
    for (unsigned c = 0; c < Vector<W>::kSize; ++c) {
      v.v[c] = W::store(t.shared[T::padded(i) + c], prime);
    }
    *reinterpret_cast<Vector<W>*>(out + t.place(i)) = v;
  });
}

}  // namespace

template <class W>
void finish_mod_up(const Context<W>& context, const BaseConversionPlan<W>& plan,
                   const Targets& targets, unsigned rows, const void* y, void* ext,
                   const Source& x) {
  const bool at_use = plan.at_use(rows);
  with_passes<W>(context.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    constexpr bool kAlways = kM2 > kSinglePassUpTo;
    auto* kernel = mod_up_kernel<W, kM2, kX2, kAlways>;
    if constexpr (kM1 == 0 && !kAlways) {
      if (at_use) kernel = mod_up_kernel<W, kM2, kX2, true>;
    }
    launch(context.stream, "ModUp", kernel,
           dim3(rows, 1u << (context.log_n - T::kLog), plan.table.digits * targets.count),
           T::kThreads, T::kBytes, 1, rows_of(context, plan, targets, rows, y),
           static_cast<typename W::Stored*>(ext), x);
  });
}

#define JALI_INSTANTIATE(W)                                                                       \
  template void finish_mod_up<W>(const Context<W>&, const BaseConversionPlan<W>&, const Targets&, \
                                 unsigned, const void*, void*, const Source&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
