// The giant steps of a baby-step giant-step block: key products of several polynomials, each with a
// key of its own, are summed in one kernel (key_product_kernel.cuh).
#include <algorithm>
#include <numeric>

#include "jali/backend/cuda/key_switch/key_product_kernel.cuh"
#include "jali/backend/cuda/key_switch/key_switcher.cuh"

namespace jali::backend::cuda {

namespace {

/// The thread blocks that the kernel has; a block of a halved tile counts as half a block.
template <class W>
std::size_t outer_blocks(int log_n, std::size_t limbs, std::size_t batch) {
  std::size_t tiles = 0;
  with_passes<W>(log_n, false, [&]<int kM1, int kX1, int kM2, int kX2>() {
    tiles = std::size_t{1} << (log_n - TileSize<W, kM2, kX2, false>::kLog - kHalved<W, kM2>);
  });
  return tiles * limbs * batch;
}

template <class W>
void launch_outer_sum(const Context<W>& context, const BaseConversionPlan<W>& plan,
                      const Targets& targets, void* acc0, void* acc1, const void* y, void* ext,
                      const Source& x, const KeyDigits& key, const OuterTerms& outer) {
  using S = typename W::Stored;
  const unsigned rows = x.batch * outer.count;
  const Rows<W> shape = rows_of(context, plan, targets, rows, y);
  const bool at_use = plan.at_use(rows);
  with_passes<W>(context.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    const unsigned tiles = 1u << (context.log_n - T::kLog);
    const unsigned slots = slots_of<W, kM2>(T::kBytes, plan.table.digits);
    const auto launch = [&](auto* kernel) {
      const std::size_t bytes = slots * T::kBytes + kDigitTable<W, kX2, T::kLog>;
      cuda::launch(context.stream, "outer sum", kernel, dim3(tiles, x.batch, targets.count),
                   T::kThreads, bytes, 1, shape, /*rows_last=*/false, slots, /*splits=*/1u,
                   static_cast<S*>(acc0), static_cast<S*>(acc1), static_cast<const S*>(ext), x, key,
                   ScaledAddendView<W>{}, outer);
    };
    if constexpr (kM1 == 0) {
      if (at_use) return launch(key_product_kernel<W, kM2, kX2, true, Then::outer>);
    }
    if constexpr (kM2 <= kSinglePassUpTo) {
      launch(key_product_kernel<W, kM2, kX2, false, Then::outer>);
    }
  });
}

}  // namespace

template <class W>
std::size_t KeySwitcher<W>::outer_terms(View acc,
                                        std::span<const std::uint32_t> digit_limbs) const {
  // A block goes through all terms: there must be blocks for all processors.
  const std::size_t limbs = acc.primes.size();
  if (outer_blocks<W>(log_n_, limbs, acc.batch) < processors_) return 0;
  const std::size_t bytes = digit_limbs.size() * limbs * limb_bytes(acc.batch);
  const std::size_t rows = kMaxRows / (limbs * acc.batch);  // the terms share launches
  return std::clamp<std::size_t>(std::min(kGiantStepBytes / bytes, rows), 1, kMaxParts);
}

template <class W>
void KeySwitcher<W>::outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                               std::span<const std::uint32_t> digit_limbs,
                               std::span<const std::uint32_t> digit_ids, bool accumulate) const {
  const std::size_t limbs = std::reduce(digit_limbs.begin(), digit_limbs.end(), std::size_t{0});
  require<InvalidArgument>(limbs >= 1 && limbs <= acc0.primes.size(),
                           "an outer sum needs the first primes of its results");
  const auto level = acc0.primes.first(limbs);
  const std::size_t size = limbs * limb_bytes(acc0.batch);
  auto divided = scratch_.allocate(terms.size() * size);
  std::vector<View> y;
  std::vector<ConstView> x1;
  const std::vector<const ConstView*> nothing(terms.size(), nullptr);
  Source source;
  source.batch = static_cast<unsigned>(acc0.batch);
  source.at = positions(level, level);
  OuterTerms outer{};
  outer.count = static_cast<unsigned>(terms.size());
  outer.accumulate = accumulate;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    void* at = static_cast<std::byte*>(divided.data()) + k * size;
    y.push_back({at, level, acc0.batch});
    x1.push_back(terms[k].x1);
    source.a[k] = at;
    source.g[k] = outer.g[k] = static_cast<std::uint32_t>(terms[k].g % (2 * config_.n));
    outer.x0[k] = terms[k].x0.data;
    outer.key[k] = terms[k].key.data;
    outer.limbs[k] = static_cast<unsigned>(terms[k].key.primes.size());
    place_key(terms[k].key, acc0.primes, outer.limb[k]);
  }
  mod_down(y, x1, nothing);
  const auto& p = plan(level, digit_limbs, acc0.primes, {});
  const Targets targets = targets_of(acc0.primes, level);
  const auto rows = static_cast<unsigned>(terms.size() * acc0.batch);
  KeyDigits digits;
  std::copy(digit_ids.begin(), digit_ids.end(), digits.id);
  auto digit_rows = scratch_.allocate(limbs * limb_bytes(rows));
  auto ext =
      scratch_.allocate(p.at_use(rows) ? 1 : digit_limbs.size() * targets.count * limb_bytes(rows));
  decompose<W>(context(), p, source, rows, digit_rows.data());
  convert_base<W>(context(), p, targets, rows, ext.data(), digit_rows.data(),
                  stay(digit_limbs.size() * targets.count - limbs, rows));
  launch_outer_sum<W>(context(), p, targets, acc0.data, acc1.data, digit_rows.data(), ext.data(),
                      source, digits, outer);
}

#define JALI_INSTANTIATE(W)                                                                     \
  template std::size_t KeySwitcher<W>::outer_terms(View, std::span<const std::uint32_t>) const; \
  template void KeySwitcher<W>::outer_sum(View, View, std::span<const Turned>,                  \
                                          std::span<const std::uint32_t>,                       \
                                          std::span<const std::uint32_t>, bool) const;
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
