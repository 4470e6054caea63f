#include <algorithm>
#include <bit>

#include "jali/backend/cuda/key_switch/key_product.cuh"
#include "jali/backend/cuda/key_switch/key_switcher.cuh"

namespace jali::backend::cuda {

template <class W>
KeySwitcher<W>::KeySwitcher(const Config& config, const Stream& stream, const Tables<W>& tables,
                            device::Pool& scratch)
    : config_(config),
      stream_(stream),
      tables_(tables),
      scratch_(scratch),
      log_n_(std::countr_zero(config.n)) {
  const int leaf = tile_leaf_stages<W>(log_n_);
  if (leaf != leaf_stages<W>(tables.ntt_variant, log_n_)) {
    own_tables_ = std::make_unique<Tables<W>>(stream, config, leaf);
  }
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, stream.device()),
        "cudaDeviceGetAttribute");
  processors_ = static_cast<unsigned>(count);
  check(cudaDeviceGetAttribute(&count, cudaDevAttrL2CacheSize, stream.device()),
        "cudaDeviceGetAttribute");
  l2_bytes_ = static_cast<std::size_t>(count);
}

template <class W>
std::size_t KeySwitcher<W>::limb_bytes(std::size_t rows) const {
  return rows * config_.n * sizeof(typename W::Stored);
}

template <class W>
const BaseConversionPlan<W>& KeySwitcher<W>::plan(std::span<const PrimeIndex> from,
                                                  std::span<const std::uint32_t> digit_limbs,
                                                  std::span<const PrimeIndex> to,
                                                  std::span<const PrimeIndex> multiply) const {
  const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  std::lock_guard lock(mutex_);
  auto& plan = plans_[{list(from), list(digit_limbs), list(to), list(multiply)}];
  if (!plan) {
    plan =
        std::make_unique<BaseConversionPlan<W>>(stream_, config_, from, digit_limbs, to, multiply);
  }
  return *plan;
}

template <class W>
void KeySwitcher<W>::mod_up(View ext, ConstView x,
                            std::span<const std::uint32_t> digit_limbs) const {
  const auto& p = plan(x.primes, digit_limbs, ext.primes, {});
  const auto rows = static_cast<unsigned>(x.batch);
  const Targets targets = targets_of(ext.primes, x.primes);
  const Source from = source(x);
  auto y = scratch_.allocate(x.primes.size() * limb_bytes(rows));
  decompose<W>(context(), p, from, rows, y.data());
  convert_base<W>(context(), p, targets, rows, ext.data, y.data(), /*stay=*/false);
  finish_mod_up<W>(context(), p, targets, rows, y.data(), ext.data, from);
}

template <class W>
void KeySwitcher<W>::key_switch(View acc0, View acc1, const Source& x,
                                std::span<const PrimeIndex> x_primes,
                                std::span<const std::uint32_t> digit_limbs, KeyView key,
                                std::span<const std::uint32_t> digit_ids,
                                const ScaledAddendView<W>& addend) const {
  const unsigned rows = x.batch;
  const auto& p = plan(x_primes, digit_limbs, acc0.primes, {});  // refuses what is too large
  const Targets targets = targets_of(acc0.primes, x_primes);
  KeyDigits digits{
      key.data, static_cast<unsigned>(key.primes.size()), key_limbs(key, acc0.primes), {}};
  std::copy(digit_ids.begin(), digit_ids.end(), digits.id);
  auto y = scratch_.allocate(x_primes.size() * limb_bytes(rows));
  auto ext =
      scratch_.allocate(p.at_use(rows) ? 1 : digit_limbs.size() * targets.count * limb_bytes(rows));
  decompose<W>(context(), p, x, rows, y.data());
  convert_base<W>(context(), p, targets, rows, ext.data(), y.data(),
                  stay(digit_limbs.size() * targets.count - x_primes.size(), rows));
  mod_up_key_product<W>(context(), p, targets, rows, acc0.data, acc1.data, y.data(), ext.data(), x,
                        digits, addend);
}

template class KeySwitcher<W32>;
template class KeySwitcher<W52>;
template class KeySwitcher<W64>;

}  // namespace jali::backend::cuda
