#include <algorithm>
#include <bit>
#include <numeric>

#include "jali/backend/cuda/switcher.cuh"

namespace jali::backend::cuda {

namespace {

Targets targets_of(std::span<const PrimeIndex> to, std::span<const PrimeIndex> own) {
  return {limbs_of(to), positions(to, own), static_cast<unsigned>(to.size())};
}

}  // namespace

template <class W>
Switcher<W>::Switcher(const Config& config, const Stream& stream, const Tables<W>& tables,
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
std::size_t Switcher<W>::limb_bytes(std::size_t rows) const {
  return rows * config_.n * sizeof(typename W::Stored);
}

template <class W>
const ConversionPlan<W>& Switcher<W>::plan(std::span<const PrimeIndex> from,
                                           std::span<const std::uint32_t> digit_limbs,
                                           std::span<const PrimeIndex> to,
                                           std::span<const PrimeIndex> multiply) const {
  const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  std::lock_guard lock(mutex_);
  auto& plan = plans_[{list(from), list(digit_limbs), list(to), list(multiply)}];
  if (!plan) {
    plan = std::make_unique<ConversionPlan<W>>(stream_, config_, from, digit_limbs, to, multiply);
  }
  return *plan;
}

template <class W>
void Switcher<W>::mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const {
  const auto& p = plan(x.primes, digit_limbs, ext.primes, {});
  const auto rows = static_cast<unsigned>(x.batch);
  const Targets targets = targets_of(ext.primes, x.primes);
  const Source from = source(x);
  auto y = scratch_.allocate(x.primes.size() * limb_bytes(rows));
  decompose<W>(engine(), p, from, rows, y.data());
  lift<W>(engine(), p, targets, rows, ext.data, y.data(), /*stay=*/false);
  lift_finish<W>(engine(), p, targets, rows, y.data(), ext.data, from);
}

template <class W>
void Switcher<W>::key_switch(View acc0, View acc1, const Source& x,
                             std::span<const PrimeIndex> x_primes,
                             std::span<const std::uint32_t> digit_limbs, KeyView key,
                             std::span<const std::uint32_t> digit_ids, const Joining& joining,
                             const JoinFactors<W>& factors) const {
  const unsigned rows = x.batch;
  const auto& p = plan(x_primes, digit_limbs, acc0.primes, {});  // refuses what is too large
  const Targets targets = targets_of(acc0.primes, x_primes);
  KeyDigits digits{
      key.data, static_cast<unsigned>(key.primes.size()), key_limbs(key, acc0.primes), {}};
  std::copy(digit_ids.begin(), digit_ids.end(), digits.id);
  auto y = scratch_.allocate(x_primes.size() * limb_bytes(rows));
  auto ext =
      scratch_.allocate(p.at_use(rows) ? 1 : digit_limbs.size() * targets.count * limb_bytes(rows));
  decompose<W>(engine(), p, x, rows, y.data());
  lift<W>(engine(), p, targets, rows, ext.data(), y.data(),
          stay(digit_limbs.size() * targets.count - x_primes.size(), rows));
  lift_product<W>(engine(), p, targets, rows, acc0.data, acc1.data, y.data(), ext.data(), x, digits,
                  joining, factors);
}

template <class W>
std::size_t Switcher<W>::outer_terms(View acc, std::span<const std::uint32_t> digit_limbs) const {
  // A block goes through all terms: there must be blocks for all processors.
  const std::size_t limbs = acc.primes.size();
  if (outer_blocks<W>(log_n_, limbs, acc.batch) < processors_) return 0;
  constexpr std::size_t kBytes = std::size_t{512} << 20;  // of lifts at a time
  const std::size_t bytes = digit_limbs.size() * limbs * limb_bytes(acc.batch);
  const std::size_t rows = kMaxRows / (limbs * acc.batch);  // the terms' share launches
  return std::clamp<std::size_t>(std::min(kBytes / bytes, rows), 1, kMaxParts);
}

template <class W>
void Switcher<W>::outer_sum(View acc0, View acc1, std::span<const Turned> terms,
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
  divide(y, x1, nothing);
  const auto& p = plan(level, digit_limbs, acc0.primes, {});
  const Targets targets = targets_of(acc0.primes, level);
  const auto rows = static_cast<unsigned>(terms.size() * acc0.batch);
  KeyDigits digits;
  std::copy(digit_ids.begin(), digit_ids.end(), digits.id);
  auto lifted = scratch_.allocate(limbs * limb_bytes(rows));
  auto ext =
      scratch_.allocate(p.at_use(rows) ? 1 : digit_limbs.size() * targets.count * limb_bytes(rows));
  decompose<W>(engine(), p, source, rows, lifted.data());
  lift<W>(engine(), p, targets, rows, ext.data(), lifted.data(),
          stay(digit_limbs.size() * targets.count - limbs, rows));
  lift_product_outer<W>(engine(), p, targets, acc0.data, acc1.data, lifted.data(), ext.data(),
                        source, digits, outer);
}

template <class W>
void Switcher<W>::divide(std::span<const View> out, std::span<const ConstView> x,
                         std::span<const ConstView* const> addend, std::uint64_t g) const {
  const auto& from = x[0].primes;
  const auto& to = out[0].primes;
  if (out.size() > 1 && out.size() * to.size() * x[0].batch > kMaxRows) {  // of a launch
    for (std::size_t h = 0; h < out.size(); ++h) {
      divide(out.subspan(h, 1), x.subspan(h, 1), addend.subspan(h, 1), g);
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
  Division d{};
  d.batch = source.batch;
  d.g = g;
  for (std::size_t h = 0; h < out.size(); ++h) {
    source.a[h] = d.x[h] = x[h].data;
    d.out[h] = out[h].data;
    d.addend[h] = addend[h] != nullptr ? addend[h]->data : nullptr;
  }
  for (std::size_t i = 0; i < to.size(); ++i) d.source.prime[i] = find(from, to[i]);
  const auto rows = static_cast<unsigned>(out.size()) * d.batch;
  auto y = scratch_.allocate(std::max<std::size_t>(dropped.size(), 1) * limb_bytes(rows));
  decompose<W>(engine(), p, source, rows, y.data());
  if (divides_by_rows<W>(engine(), p)) {
    return divide_rows<W>(engine(), p, targets, rows, y.data(), d);
  }
  auto lifted = scratch_.allocate(p.at_use(rows) ? 1 : to.size() * limb_bytes(rows));
  if (divides_few_rows<W>(engine(), p, rows)) {
    lift<W>(engine(), p, targets, rows, lifted.data(), y.data(), /*stay=*/false, /*begin=*/false);
    return divide_few_rows<W>(engine(), p, targets, rows, lifted.data(), d);
  }
  lift<W>(engine(), p, targets, rows, lifted.data(), y.data(), stay(to.size(), rows));
  cuda::divide<W>(engine(), p, targets, rows, y.data(), lifted.data(), d);
}

template class Switcher<W32>;
template class Switcher<W52>;
template class Switcher<W64>;

}  // namespace jali::backend::cuda
