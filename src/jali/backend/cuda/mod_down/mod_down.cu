// Mathematics. out = (x A - [x A]_D) / D modulo a prime p of the result is x A D^-1 - l D^-1, l the
// conversion of [x A]_D to p. The block that finishes l's transform combines the two.
#include <algorithm>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/key_switch/key_switcher.cuh"
#include "jali/backend/cuda/mod_down/mod_down.cuh"

namespace jali::backend::cuda {

namespace {

template <class W, int kM, int kX, bool kDirect>
__global__ void __launch_bounds__(TilePass<W, kM, kX, false>::kThreads)
    mod_down_kernel(int log_n, Limbs limbs, unsigned rows, const typename W::Prime* primes,
                    const typename W::Twiddle* twiddles, const Factor<typename W::R>* keep,
                    const Factor<typename W::R>* divide, const typename W::Stored* converted,
                    DigitTable table, DirectConversion<W> direct,
                    const __grid_constant__ ModDownView d) {
  using T = TilePass<W, kM, kX, false>;
  using Stored = typename W::Stored;
  using V = Vector<W>;
  extern __shared__ __align__(16) unsigned char memory[];
  // If conversions are computed from y, the targets of a row follow each other while y is in L2.
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
  const auto* in = converted + ((static_cast<std::size_t>(target) * rows + row) << log_n);
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
    // `in` is read for the last time.
    t.template each<0>([&](int e, unsigned at) { x[e] = W::load(__ldcs(in + at)); });
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
      v.v[c] = mod_down_residue<W>(t.shared[T::padded(i + c)], divide_factor, from != kSkip, k.v[c],
                                   keep_factor, addend != nullptr, a.v[c], prime);
    }
    *reinterpret_cast<V*>(out + i) = v;
  });
}

template <class W>
void launch_mod_down(const Context<W>& context, const BaseConversionPlan<W>& plan,
                     const Targets& targets, unsigned rows, const void* y, const void* converted,
                     const ModDownView& d) {
  const bool at_use = plan.at_use(rows);
  with_passes<W>(context.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    constexpr bool kAlways = kM2 > kSinglePassUpTo;
    auto* kernel = mod_down_kernel<W, kM2, kX2, kAlways>;
    if constexpr (kM1 == 0 && !kAlways) {
      if (at_use) kernel = mod_down_kernel<W, kM2, kX2, true>;
    }
    const unsigned tiles = 1u << (context.log_n - T::kLog);
    const dim3 grid = at_use ? dim3(targets.count, rows, tiles) : dim3(tiles, rows, targets.count);
    launch(context.stream, "ModDown", kernel, grid, T::kThreads, T::kBytes, 1, context.log_n,
           targets.prime, rows, context.tables.primes.template as<typename W::Prime>(),
           context.tables.forward.template as<typename W::Twiddle>(),
           plan.keep.template as<Factor<typename W::R>>(),
           plan.divide.template as<Factor<typename W::R>>(),
           static_cast<const typename W::Stored*>(converted), plan.table,
           direct_conversion(plan, y), d);
  });
}

}  // namespace

template <class W>
void KeySwitcher<W>::mod_down(std::span<const View> out, std::span<const ConstView> x,
                              std::span<const ConstView* const> addend, std::uint64_t g) const {
  const auto& from = x[0].primes;
  const auto& to = out[0].primes;
  if (out.size() > 1 && out.size() * to.size() * x[0].batch > kMaxRows) {  // of a launch
    for (std::size_t h = 0; h < out.size(); ++h) {
      mod_down(out.subspan(h, 1), x.subspan(h, 1), addend.subspan(h, 1), g);
    }
    return;
  }
  PrimeList dropped, added;
  Source source;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (find(to, from[i]) != kSkip) continue;
    source.at.prime[dropped.size()] = static_cast<std::uint16_t>(i);
    dropped.push_back(from[i]);
  }
  for (const PrimeIndex t : to) {
    if (find(from, t) == kSkip) added.push_back(t);
  }
  const std::uint32_t one_digit[] = {static_cast<std::uint32_t>(dropped.size())};
  const auto& p = plan(dropped, one_digit, to, added);
  Targets targets{limbs_of(to), {}, static_cast<unsigned>(to.size())};
  std::fill(std::begin(targets.position.prime), std::end(targets.position.prime), kSkip);
  source.batch = static_cast<unsigned>(x[0].batch);
  ModDownView d{};
  d.batch = source.batch;
  d.g = g;
  for (std::size_t h = 0; h < out.size(); ++h) {
    source.a[h] = d.x[h] = x[h].data;
    d.out[h] = out[h].data;
    d.addend[h] = addend[h] != nullptr ? addend[h]->data : nullptr;
  }
  for (std::size_t i = 0; i < to.size(); ++i) d.source.prime[i] = find(from, to[i]);
  const auto rows = static_cast<unsigned>(out.size()) * d.batch;
  // Bases that have no prime in common are those of a message and of a ciphertext (cpu/basis.cpp).
  const bool secret = dropped.size() == from.size();
  auto y = scratch_.allocate(std::max<std::size_t>(dropped.size(), 1) * limb_bytes(rows), secret);
  decompose<W>(context(), p, source, rows, y.data());
  if (mod_down_takes_one_pass<W>(context(), p)) {
    return mod_down_in_one_pass<W>(context(), p, targets, rows, y.data(), d);
  }
  auto converted = scratch_.allocate(p.at_use(rows) ? 1 : to.size() * limb_bytes(rows), secret);
  if (mod_down_has_few_rows<W>(context(), p, rows)) {
    convert_base<W>(context(), p, targets, rows, converted.data(), y.data(), /*stay=*/false,
                    /*begin=*/false);
    return mod_down_few_rows<W>(context(), p, targets, rows, converted.data(), d);
  }
  convert_base<W>(context(), p, targets, rows, converted.data(), y.data(), stay(to.size(), rows));
  launch_mod_down<W>(context(), p, targets, rows, y.data(), converted.data(), d);
}

#define JALI_INSTANTIATE(W)                                                                 \
  template void KeySwitcher<W>::mod_down(std::span<const View>, std::span<const ConstView>, \
                                         std::span<const ConstView* const>, std::uint64_t) const;
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
