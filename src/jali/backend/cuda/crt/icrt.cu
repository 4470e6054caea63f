// ICRT-C: x = sum_i y_i (Q/q_i) - v Q, y_i = [x_i (Q/q_i)^-1], v = floor(sum_i y_i / q_i): sums of
// products of words with rows of constants (icrt_tile.cuh). v comes from doubles; near an integer
// it may be one too small, and then x is compared with Q.
#include <algorithm>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/crt/icrt_tile.cuh"
#include "jali/backend/cuda/variants/crt_variants.cuh"

namespace jali::backend::cuda {

namespace {

using namespace icrt_tile;

template <class W, int kPieces>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 6) icrt_kernel(Arguments<W> a, Limbs limbs) {
  extern __shared__ __align__(16) unsigned char shared[];
  after_predecessor();
  const Place p(a.s);
  const auto [lane, warp, warps, at, stride] = p;
  const unsigned count = a.s.limb_count;
  const Tile tile(shared, a.chunks, warps);
  double quotient = 0;
  for (unsigned i = warp; i < count; i += warps) {
    const typename W::Prime prime = a.primes[limbs.prime[i]];
    const u64 y = static_cast<u64>(
        W::store(W::mul_lazy(W::load(a.x[i * stride + at]), a.factors[i], prime), prime));
    quotient += static_cast<double>(y) * a.reciprocals[i];
    tile.put<kPieces>(i, lane, y);
  }
  tile.quotient[warp * kWarp + lane] = quotient;
  __syncthreads();
  // v + x/Q, off by less than 1024 roundings of numbers below 2^8.
  quotient = 0;
  for (unsigned w = 0; w < warps; ++w) quotient += tile.quotient[w * kWarp + lane];
  constexpr double kError = 0x1p-36;
  const double least = floor(quotient - kError);
  // Whether the integer may lie in [Q, 2Q).
  const bool unsure = least != floor(quotient + kError);
  const double v = least < 0 ? 0 : least;
  if (warp == 0) tile.y[(a.rows - 1) * kWarp + lane] = static_cast<u32>(v);
  __syncthreads();
  sum_rows<true>(a, tile, p, unsure);
}

/// (Q/q_i)^-1 mod q_i and Q/q_i; last -Q.
template <class W>
Constants<W> product_sum_constants(const std::vector<u64>& q, std::size_t words) {
  Constants<W> c;
  const auto product_of_others = [&](std::size_t except) {
    std::vector<u64> value(words, 0);
    value[0] = 1;
    for (std::size_t j = 0; j < q.size(); ++j) {
      if (j != except) multiply(value, q[j]);
    }
    return value;
  };
  for (std::size_t i = 0; i < q.size(); ++i) {
    const arith::Modulus mod(q[i]);
    u64 hat = 1;
    for (std::size_t j = 0; j < q.size(); ++j) {
      if (j != i) hat = mod.mul(hat, mod.reduce(q[j]));
    }
    c.factors.push_back(make_factor<W>(mod.inverse(hat), q[i]));
    c.rows.push_back(product_of_others(i));
  }
  std::vector<u64> negated = product_of_others(q.size());
  u64 carry = 1;
  for (u64& w : negated) {
    w = ~w + carry;
    carry = carry & (w == 0);
  }
  c.rows.push_back(std::move(negated));
  return c;
}

}  // namespace

template <class W>
IcrtPlan<W>::IcrtPlan(const Stream& stream, const Config& config,
                      std::span<const PrimeIndex> primes, std::size_t words, IcrtMethod method) {
  check_crt_words(words);
  const auto q = primes_of(config, primes);
  const std::size_t count = q.size();
  pieces = pieces_of(q);
  chunks = static_cast<unsigned>((2 * words + kGroup) / kGroup);  // a word above Q at least
  std::vector<u64> product(2 * chunks, 0);
  product[0] = 1;
  for (const u64 p : q) multiply(product, p);
  require<InvalidArgument>(std::all_of(product.begin() + static_cast<std::ptrdiff_t>(words),
                                       product.end(), [](u64 w) { return w == 0; }),
                           "icrt: the words given cannot hold the modulus");
  modulus = Constant(stream, product.data(), product.size() * 8);

  auto c = method == IcrtMethod::garner ? garner_constants<W>(q, 2 * chunks)
                                        : product_sum_constants<W>(q, 2 * chunks);
  const std::size_t whole = c.rows.size() - count;  // rows without a second piece: -Q
  rows = static_cast<unsigned>(count * static_cast<std::size_t>(pieces) + whole);
  std::vector<u32> table(std::size_t{rows} * chunks * kGroup);
  std::size_t r = 0;
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    for (int piece = 0; piece < (i < count ? pieces : 1); ++piece, ++r) {
      for (std::size_t k = 0; k < chunks * kGroup; ++k) {
        table[(k / kGroup * rows + r) * kGroup + k % kGroup] =
            static_cast<u32>(c.rows[i][k / 2] >> (k % 2 * 32));
      }
      multiply(c.rows[i], u64{1} << 32);
    }
  }
  std::vector<double> inverses;
  for (const u64 p : q) inverses.push_back(1.0 / static_cast<double>(p));
  reciprocals = Constant(stream, inverses.data(), inverses.size() * sizeof(double));
  factors = Constant(stream, c.factors.data(), c.factors.size() * sizeof(c.factors[0]));
  row = Constant(stream, table.data(), table.size() * sizeof(u32));
}

template <class W>
void icrt(const Stream& stream, const Tables<W>& t, const IcrtPlan<W>& plan, const Shape& s,
          const Limbs& limbs, u64* integers, unsigned words, const void* x, IcrtMethod method) {
  if (s.limb_count == 0) return;
  if (method == IcrtMethod::garner) {
    return icrt_by_garner<W>(stream, t, plan, s, limbs, integers, words, x);
  }
  auto* kernel = plan.pieces == 1 ? icrt_kernel<W, 1> : icrt_kernel<W, 2>;
  icrt_tile::launch<W>(stream, kernel, t, plan, s, limbs, integers, words, x);
}

#define JALI_INSTANTIATE(W)                                                                \
  template struct IcrtPlan<W>;                                                             \
  template void icrt<W>(const Stream&, const Tables<W>&, const IcrtPlan<W>&, const Shape&, \
                        const Limbs&, u64*, unsigned, const void*, IcrtMethod);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
