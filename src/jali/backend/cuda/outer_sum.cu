// Sums of products of several sources, each with a key of its own (lift_product.cuh).
#include "jali/backend/cuda/lift_product.cuh"

namespace jali::backend::cuda {

template <class W>
std::size_t outer_blocks(int log_n, std::size_t limbs, std::size_t batch) {
  std::size_t tiles = 0;
  with_passes<W>(log_n, false, [&]<int kM1, int kX1, int kM2, int kX2>() {
    tiles = std::size_t{1} << (log_n - TileSize<W, kM2, kX2, false>::kLog - kHalved<W, kM2>);
  });
  return tiles * limbs * batch;
}

template <class W>
void lift_product_outer(const Engine<W>& engine, const ConversionPlan<W>& plan,
                        const Targets& targets, void* acc0, void* acc1, const void* y, void* ext,
                        const Source& x, const KeyDigits& key, const OuterTerms& outer) {
  using S = typename W::Stored;
  const unsigned rows = x.batch * outer.count;
  const Rows<W> shape = rows_of(engine, plan, targets, rows, y);
  const bool at_use = plan.at_use(rows);
  with_passes<W>(engine.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    const unsigned tiles = 1u << (engine.log_n - T::kLog);
    const unsigned slots = slots_of<W, kM2>(T::kBytes, plan.table.digits);
    const auto launch = [&](auto* kernel) {
      const std::size_t bytes = slots * T::kBytes + kDigitTable<W, kX2, T::kLog>;
      cuda::launch(engine.stream, "outer sum", kernel, dim3(tiles, x.batch, targets.count),
                   T::kThreads, bytes, 1, shape, /*rows_last=*/false, slots, /*splits=*/1u,
                   static_cast<S*>(acc0), static_cast<S*>(acc1), static_cast<const S*>(ext), x, key,
                   Joining{}, JoinFactors<W>{}, outer);
    };
    if constexpr (kM1 == 0) {
      if (at_use) return launch(lift_product_kernel<W, kM2, kX2, true, Then::outer>);
    }
    if constexpr (kM2 <= kSinglePassUpTo) {
      launch(lift_product_kernel<W, kM2, kX2, false, Then::outer>);
    }
  });
}

#define JALI_INSTANTIATE(W)                                                                       \
  template void lift_product_outer<W>(const Engine<W>&, const ConversionPlan<W>&, const Targets&, \
                                      void*, void*, const void*, void*, const Source&,            \
                                      const KeyDigits&, const OuterTerms&);                       \
  template std::size_t outer_blocks<W>(int, std::size_t, std::size_t);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
