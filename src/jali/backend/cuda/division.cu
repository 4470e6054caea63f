// Mathematics. out = (x A - [x A]_D) / D modulo a prime p of the result is x A D^-1 - l D^-1, l the lift
// of [x A]_D. The block that finishes l's transform combines the two.
#include "jali/backend/cuda/division.cuh"
#include "jali/backend/cuda/launch.cuh"

namespace jali::backend::cuda {

namespace {

template <class W, int kM, int kX, bool kDirect>
__global__ void __launch_bounds__(TilePass<W, kM, kX, false>::kThreads)
    divide_kernel(int log_n, Limbs limbs, unsigned rows, const typename W::Prime* primes,
                  const typename W::Twiddle* twiddles, const Factor<typename W::R>* keep,
                  const Factor<typename W::R>* divide, const typename W::Stored* lifted,
                  DigitTable table, DirectLift<W> direct, const __grid_constant__ Division d) {
  using T = TilePass<W, kM, kX, false>;
  using Stored = typename W::Stored;
  using V = Vector<W>;
  extern __shared__ __align__(16) unsigned char memory[];
  // Lifts from y: the targets of a row follow each other, while y is in L2.
  const unsigned target = kDirect ? blockIdx.x : blockIdx.z, row = blockIdx.y;
  const unsigned part = part_of(row, d.batch), b = row - part * d.batch;
  const unsigned index = limbs.prime[target], from = d.source.prime[target];
  const typename W::Prime prime = primes[index];
  const T t{reinterpret_cast<typename W::R*>(memory),
            threadIdx.x,
            kDirect ? blockIdx.z : blockIdx.x,
            log_n,
            log_n - kM,
            twiddles + (static_cast<std::size_t>(index) << log_n),
            prime};
  const auto* in = lifted + ((static_cast<std::size_t>(target) * rows + row) << log_n);
  const auto keep_factor = keep[target], divide_factor = divide[target];
  after_predecessor();
  typename W::R x[T::kHeld];
  if constexpr (kDirect) {
    const unsigned first = t.place(t.template base<0>());
    direct.template each<T::kHeld>(
        table, 0, target, rows, row, log_n, prime,
        [&](int e) { return first + T::template offset<0>(e); },
        [&](int e, typename W::R v) { x[e] = v; });
  } else {
    t.template each<0>(
        [&](int e, unsigned at) { x[e] = W::load(__ldcs(in + at)); });  // the last time
  }
  t.run(x);
  t.template put<T::kLast>(x);
  __syncthreads();
  const std::size_t at = (static_cast<std::size_t>(target) * d.batch + b) << log_n;
  const std::size_t from_at =
      ((static_cast<std::size_t>(from) * d.batch + b) << log_n) + t.place(0);
  const auto* kept = static_cast<const Stored*>(d.x[part]) + from_at;
  const auto* addend = static_cast<const Stored*>(d.addend[part]);
  auto* out = static_cast<Stored*>(d.out[part]) + at + t.place(0);
  t.each_vector([&](unsigned, unsigned i) {
    V v, k, a;
    if (from != kSkip) k = *reinterpret_cast<const V*>(kept + i);
    if (addend != nullptr) {
      if (d.g == 1) {
        a = *reinterpret_cast<const V*>(addend + at + t.place(i));
      } else {
#pragma unroll
        for (unsigned c = 0; c < V::kSize; ++c) {
          a.v[c] = addend[at + source_ntt(t.place(i + c), d.g, log_n)];
        }
      }
    }
#pragma unroll
    for (unsigned c = 0; c < V::kSize; ++c) {
      v.v[c] = divided<W>(t.shared[T::padded(i + c)], divide_factor, from != kSkip, k.v[c],
                          keep_factor, addend != nullptr, a.v[c], prime);
    }
    *reinterpret_cast<V*>(out + i) = v;
  });
}

}  // namespace

template <class W>
void divide(const Engine<W>& engine, const ConversionPlan<W>& plan, const Targets& targets,
            unsigned rows, const void* y, const void* lifted, const Division& d) {
  const bool at_use = plan.at_use(rows);
  with_passes<W>(engine.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    constexpr bool kAlways = kM2 > kSinglePassUpTo;
    auto* kernel = divide_kernel<W, kM2, kX2, kAlways>;
    if constexpr (kM1 == 0 && !kAlways) {
      if (at_use) kernel = divide_kernel<W, kM2, kX2, true>;
    }
    const unsigned tiles = 1u << (engine.log_n - T::kLog);
    const dim3 grid = at_use ? dim3(targets.count, rows, tiles) : dim3(tiles, rows, targets.count);
    launch(engine.stream, "division", kernel, grid, T::kThreads, T::kBytes, 1, engine.log_n,
           targets.prime, rows, engine.tables.primes.template as<typename W::Prime>(),
           engine.tables.forward.template as<typename W::Twiddle>(),
           plan.keep.template as<Factor<typename W::R>>(),
           plan.divide.template as<Factor<typename W::R>>(),
           static_cast<const typename W::Stored*>(lifted), plan.table, direct_lift(plan, y), d);
  });
}

#define JALI_INSTANTIATE(W)                                                                     \
  template void divide<W>(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned, \
                          const void*, const void*, const Division&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
