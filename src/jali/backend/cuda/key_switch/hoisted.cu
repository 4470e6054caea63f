#include "jali/backend/cuda/common/row_threads.cuh"
#include "jali/backend/cuda/common/source.cuh"
#include "jali/backend/cuda/key_switch/hoisted.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
__global__ void hoisted_key_product_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                           typename W::Stored* acc0, typename W::Stored* acc1,
                                           const typename W::Stored* ext,
                                           const typename W::Stored* key, Digits digits,
                                           std::uint64_t g, bool accumulate) {
  const Place p = place(s);
  const typename W::Prime prime = primes[limbs.prime[p.limb]];
  const std::size_t n = std::size_t{1} << s.log_n;
  const std::size_t block = static_cast<std::size_t>(s.limb_count) * s.batch * n;
  const std::size_t from = p.at - p.k + (g == 1 ? p.k : source_ntt(p.k, g, s.log_n));
  typename W::Sum s0, s1;
  if (accumulate) {
    s0 = W::sum_of(W::load(acc0[p.at]));
    s1 = W::sum_of(W::load(acc1[p.at]));
  }
  int room = W::kTerms - 1;
  for (int j = 0; j < digits.count; ++j) {
    const auto x = W::load(ext[j * block + from]);
    const auto* row =
        key + ((2ull * digits.id[j] * digits.limbs + digits.limb.prime[p.limb]) << s.log_n) + p.k;
    const auto k0 = W::load(row[0]), k1 = W::load(row[digits.limbs * n]);
    if (room == 0) {
      s0 = W::sum_of(W::total(s0, prime));
      s1 = W::sum_of(W::total(s1, prime));
      room = W::kTerms - 1;
    }
    W::add(s0, x, k0, prime);
    W::add(s1, x, k1, prime);
    --room;
  }
  acc0[p.at] = W::canonical(W::total(s0, prime));
  acc1[p.at] = W::canonical(W::total(s1, prime));
}

}  // namespace

template <class W>
void hoisted_key_product(const Stream& stream, const Tables<W>& t, const Shape& s,
                         const Limbs& limbs, void* acc0, void* acc1, const void* ext,
                         const void* key, const Digits& digits, std::uint64_t g, bool accumulate) {
  using S = typename W::Stored;
  launch(stream, "key product", hoisted_key_product_kernel<W>, grid_of(s), threads_of(s), 0, 1, s,
         limbs, t.primes.template as<typename W::Prime>(), static_cast<S*>(acc0),
         static_cast<S*>(acc1), static_cast<const S*>(ext), static_cast<const S*>(key), digits, g,
         accumulate);
}

#define JALI_INSTANTIATE(W)                                                                  \
  template void hoisted_key_product<W>(const Stream&, const Tables<W>&, const Shape&,        \
                                       const Limbs&, void*, void*, const void*, const void*, \
                                       const Digits&, std::uint64_t, bool);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
