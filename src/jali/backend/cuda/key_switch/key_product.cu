// Launches of the key product (key_product_kernel.cuh). If tiles are few, several blocks share the
// digits of one.
#include "jali/backend/cuda/key_switch/key_product_kernel.cuh"

namespace jali::backend::cuda {

namespace {

// acc_c = the sums of the splits (+ the addend); parts: (split, target, rows, N) of both.
template <class W>
__global__ void add_splits_kernel(Rows<W> s, unsigned splits, typename W::Stored* acc0,
                                  typename W::Stored* acc1, const typename W::Stored* part0,
                                  const typename W::Stored* part1, Source source,
                                  ScaledAddendView<W> addend) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, target = blockIdx.z;
  const unsigned own = s.targets.position.prime[target];
  const typename W::Prime prime = s.primes[s.targets.prime.prime[target]];
  const std::size_t at = ((static_cast<std::size_t>(target) * s.rows + row) << s.log_n) + k;
  const std::size_t part = (static_cast<std::size_t>(s.targets.count) * s.rows) << s.log_n;
  after_predecessor();
  typename W::R r0[] = {W::load(part0[at])}, r1[] = {W::load(part1[at])};
  for (unsigned i = 1; i < splits; ++i) {
    r0[0] = W::add_mod(r0[0], W::load(part0[i * part + at]), prime);
    r1[0] = W::add_mod(r1[0], W::load(part1[i * part + at]), prime);
  }
  if (addend.a0 != nullptr && own != kSkip) {
    add_addend<W>(addend, source, own, row, k, s.log_n, prime, r0, r1);
  }
  acc0[at] = W::canonical(r0[0]), acc1[at] = W::canonical(r1[0]);
}

}  // namespace

template <class W>
void mod_up_key_product(const Context<W>& context, const BaseConversionPlan<W>& plan,
                        const Targets& targets, unsigned rows, void* acc0, void* acc1,
                        const void* y, void* ext, const Source& x, const KeyDigits& key,
                        const ScaledAddendView<W>& addend) {
  using S = typename W::Stored;
  const Rows<W> shape = rows_of(context, plan, targets, rows, y);
  const bool at_use = plan.at_use(rows);
  with_passes<W>(context.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    const unsigned tiles = 1u << (context.log_n - T::kLog), digits = plan.table.digits;
    // If digits are many and blocks few, several blocks share a tile, in a cluster if the GPU has
    // clusters.
    const bool clusters = context.transforms.ntt_variant != NttVariant::two_pass;
    const unsigned wanted = std::clamp(std::max(1u, kThreadsWanted / T::kThreads) *
                                           context.processors / (tiles * rows * targets.count),
                                       1u, T::kLog > kSinglePassUpTo ? digits : (digits + 1) / 2);
    const unsigned per_split = (digits + wanted - 1) / wanted;
    const unsigned splits = (digits + per_split - 1) / per_split;  // 0 if there is no digit
    const auto slots = slots_of<W, kM2>(T::kBytes, per_split);
    // If a tile is a row, sums through memory were as fast.
    const bool meets =
        kM1 > 0 && clusters && splits > 1 && splits <= kMostMeet && slots == per_split;
    // Blocks that run together have the same target of the key and different tiles and rows; if L2
    // holds all of the key, they have different targets.
    const std::size_t key_bytes = (std::size_t{2} * digits * targets.count * sizeof(S))
                                  << context.log_n;
    const bool rows_last = meets || key_bytes <= kKeyInL2;
    const auto launch = [&](auto* kernel, S* out0, S* out1) {
      const std::size_t bytes =
          (meets ? std::max(slots, 2u) : slots) * T::kBytes + kDigitTable<W, kX2, T::kLog>;
      const unsigned parts = targets.count * splits;
      const dim3 grid = rows_last ? dim3(parts, tiles, rows) : dim3(tiles, rows, parts);
      cuda::launch(context.stream, "key product", kernel, grid, T::kThreads, bytes,
                   meets ? splits : 1, shape, rows_last, slots, splits, out0, out1,
                   static_cast<const S*>(ext), x, key, addend, OuterTerms{});
    };
    const auto choose = [&]<Then kThen>(S* out0, S* out1) {
      if constexpr (kM1 == 0) {
        if (at_use) return launch(key_product_kernel<W, kM2, kX2, true, kThen>, out0, out1);
      }
      if constexpr (kM2 <= kSinglePassUpTo) {
        launch(key_product_kernel<W, kM2, kX2, false, kThen>, out0, out1);
      }
    };
    auto *out0 = static_cast<S*>(acc0), *out1 = static_cast<S*>(acc1);
    if constexpr (kM1 > 0) {
      if (meets) return choose.template operator()<Then::meets>(out0, out1);
    }
    if (splits == 1) {
      return addend.a0 != nullptr ? choose.template operator()<Then::adds>(out0, out1)
                                  : choose.template operator()<Then::nothing>(out0, out1);
    }
    const std::size_t part = (static_cast<std::size_t>(targets.count) * rows * splits)
                             << context.log_n;
    auto parts = context.scratch.allocate(2 * part * sizeof(S));
    auto* part0 = static_cast<S*>(parts.data());
    choose.template operator()<Then::nothing>(part0, part0 + part);
    cuda::launch(context.stream, "key product", add_splits_kernel<W>,
                 dim3((1u << context.log_n) / kBlockThreads, rows, targets.count), kBlockThreads, 0,
                 1, shape, splits, out0, out1, part0, part0 + part, x, addend);
  });
}

#define JALI_INSTANTIATE(W)                                                                    \
  template void mod_up_key_product<W>(                                                         \
      const Context<W>&, const BaseConversionPlan<W>&, const Targets&, unsigned, void*, void*, \
      const void*, void*, const Source&, const KeyDigits&, const ScaledAddendView<W>&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
