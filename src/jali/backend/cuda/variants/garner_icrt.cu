// ICRT-G of GIF-FHE, section V, Garner's mixed radix: x = sum_i d_i q_0 .. q_{i-1} with digits d_i
// < q_i, again a sum of products of words with rows of constants (icrt_tile.cuh). Every warp takes
// its share of the limbs that a digit is subtracted from.
#include "jali/arith/modulus.h"
#include "jali/backend/cuda/variants/crt_variants.cuh"

namespace jali::backend::cuda {

namespace {

using namespace icrt_tile;

// (u - d) f, congruent; u canonical, d any residue.
__device__ inline W32::R difference_times(W32::R u, W32::R d, Factor<W32::R> f,
                                          const W32::Prime& p) {
  return W32::mul_lazy(u - W32::mul_lazy(d, p.one, p) - p.minus_2q, f, p);
}
__device__ inline W64::R difference_times(W64::R u, W64::R d, Factor<W64::R> f,
                                          const W64::Prime& p) {
  return W64::mul_lazy(u - W64::mul_lazy(d, p.one, p) + 2 * p.q, f, p);
}
__device__ inline W52::R difference_times(W52::R u, W52::R d, Factor<W52::R> f,
                                          const W52::Prime& p) {
  return W52::mul_lazy(u - W52::reduce(d, p), f, p);
}

template <class W, int kPieces>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 6)
    garner_icrt_kernel(Arguments<W> a, Limbs limbs) {
  extern __shared__ __align__(16) unsigned char shared[];
  after_predecessor();
  const Place p(a.s);
  const auto [lane, warp, warps, at, stride] = p;
  const unsigned count = a.s.limb_count;
  const Tile tile(shared, a.chunks, warps);
  // digit_i = (.. ((x_i - digit_0) / q_0 - digit_1) / q_1 ..) mod q_i: one digit after the other is
  // taken from all limbs that follow.
  for (unsigned i = warp; i < count; i += warps) {
    tile.put<kPieces>(i, lane, static_cast<u64>(a.x[i * stride + at]));
  }
  __syncthreads();
  for (unsigned j = 0; j + 1 < count; ++j) {
    const auto digit = W::load(static_cast<typename W::Stored>(tile.get<kPieces>(j, lane)));
    for (unsigned i = j + 1 + warp; i < count; i += warps) {
      const typename W::Prime prime = a.primes[limbs.prime[i]];
      const auto u = W::load(static_cast<typename W::Stored>(tile.get<kPieces>(i, lane)));
      const auto d = difference_times(u, digit, a.factors[j * count + i], prime);
      tile.put<kPieces>(i, lane, static_cast<u64>(W::store(d, prime)));
    }
    __syncthreads();
  }
  sum_rows<false>(a, tile, p, false);
}

}  // namespace

template <class W>
Constants<W> garner_constants(const std::vector<u64>& q, std::size_t words) {
  const std::size_t count = q.size();
  Constants<W> c;
  c.factors.resize(count * count);
  std::vector<u64> before(words, 0);
  before[0] = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const arith::Modulus mod(q[i]);
    for (std::size_t j = 0; j < i; ++j) {
      c.factors[j * count + i] = make_factor<W>(mod.inverse(mod.reduce(q[j])), q[i]);
    }
    c.rows.push_back(before);
    multiply(before, q[i]);
  }
  return c;
}

template <class W>
void icrt_by_garner(const Stream& stream, const Tables<W>& t, const IcrtPlan<W>& plan,
                    const Shape& s, const Limbs& limbs, u64* integers, unsigned words,
                    const void* x) {
  auto* kernel = plan.pieces == 1 ? garner_icrt_kernel<W, 1> : garner_icrt_kernel<W, 2>;
  icrt_tile::launch<W>(stream, kernel, t, plan, s, limbs, integers, words, x);
}

#define JALI_INSTANTIATE(W)                                                                   \
  template icrt_tile::Constants<W> garner_constants<W>(const std::vector<u64>&, std::size_t); \
  template void icrt_by_garner<W>(const Stream&, const Tables<W>&, const IcrtPlan<W>&,        \
                                  const Shape&, const Limbs&, u64*, unsigned, const void*);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
