// CRT-MUL. Integers and powers of two are 32-bit words, whose products add up in 96 bits without
// reductions; a thread reads a word once for four limbs.
//
// Inverse. x = sum_i y_i (Q/q_i) - v Q, y_i = [x_i (Q/q_i)^-1], v = floor(sum_i y_i / q_i), or, by Garner,
// x = sum_i d_i q_0 .. q_{i-1}: either way sums of products of words with rows of constants, modulo a power
// of two. A block makes 32 integers, a lane each. Its warps first make the y (or the digits d, where every
// warp takes its share of the limbs that a digit is subtracted from), then 128 bits of the integers each; one
// warp carries from those to the next. v comes from doubles; near an integer it may be one too small, and
// then x is compared with Q.
#include <algorithm>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/common/reduce.cuh"
#include "jali/backend/cuda/crt/crt.cuh"
#include "jali/backend/cuda/launch.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kThreads = 128, kWarp = 32, kMaxWarps = 8;
constexpr unsigned kGroup = 4;  // limbs of a vector of constants, words of a chunk
constexpr unsigned kFewThreads = 1 << 16;  // leave much of a GPU idle
constexpr unsigned kMaxWords = 64;

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class W>
__global__ void crt_mod_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                               typename W::Stored* out, const u64* integers, unsigned words) {
  after_predecessor();
  const unsigned t = blockIdx.z, b = blockIdx.y;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t stride = static_cast<std::size_t>(s.batch) << s.log_n;
  const auto beta = power_of_two<W>(64, prime);
  typename W::R sum = from_u64(0, prime);
  for (unsigned w = words; w-- > 0;) {
    typename W::Sum step = W::sum_of(from_u64(integers[w * stride + at], prime));
    W::add(step, sum, beta, prime);
    sum = W::total(step, prime);
  }
  out[t * stride + at] = W::store(sum, prime);
}

/// kVectors * kGroup limbs a thread.
template <class W, int kPieces, int kVectors>
__global__ void __launch_bounds__(kThreads)
    crt_mul_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                   const uint4* __restrict__ powers, typename W::Stored* out,
                   const u64* __restrict__ integers, unsigned words) {
  after_predecessor();
  const unsigned first = blockIdx.z * kVectors, groups = (s.limb_count + kGroup - 1) / kGroup;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(blockIdx.y) << s.log_n) + k;
  const std::size_t stride = static_cast<std::size_t>(s.batch) << s.log_n;
  const std::size_t row = static_cast<std::size_t>(words) * 2 * kPieces;
  const uint4* power[kVectors];
#pragma unroll
  for (unsigned v = 0; v < kVectors; ++v) power[v] = powers + min(first + v, groups - 1) * row;
  Sum96 sum[kVectors][kPieces][kGroup];
#pragma unroll 4
  for (unsigned w = 0; w < words; ++w) {
    const u64 x = integers[w * stride + at];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const u32 word = half == 0 ? static_cast<u32>(x) : static_cast<u32>(x >> 32);
#pragma unroll
      for (unsigned v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
          const uint4 p = power[v][(2 * w + half) * kPieces + piece];
          sum[v][piece][0].add(word, p.x);
          sum[v][piece][1].add(word, p.y);
          sum[v][piece][2].add(word, p.z);
          sum[v][piece][3].add(word, p.w);
        }
      }
    }
  }
#pragma unroll
  for (unsigned v = 0; v < kVectors; ++v) {
#pragma unroll
    for (unsigned i = 0; i < kGroup; ++i) {
      const unsigned limb = (first + v) * kGroup + i;
      if (limb >= s.limb_count) return;
      const typename W::Prime prime = primes[limbs.prime[limb]];
      const auto& low = sum[v][0][i];
      if constexpr (kPieces == 1) {
        out[limb * stride + at] = W::canonical(total(low, prime));
      } else {
        out[limb * stride + at] = W::canonical(total(low, sum[v][1][i], prime));
      }
    }
  }
}

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

/// What the blocks of one launch share.
template <class W>
struct Icrt {
  Shape s;
  const typename W::Prime* primes;
  const Factor<typename W::R>* factors;
  const double* reciprocals;
  const uint4* row;
  const u64* modulus;
  const typename W::Stored* x;
  u64* integers;
  unsigned chunks, rows, words;
};

/// Shared memory of a block, by lanes.
struct IcrtTile {
  uint4* chunk;  // [chunks][32]: 128 bits of the integers
  u64* carry;  // [chunks][32]: what a chunk passes on
  double* quotient;  // [warps][32]: part of sum_i y_i / q_i
  u32* y;  // [rows][32]
  __device__ IcrtTile(void* shared, unsigned chunks, unsigned warps)
      : chunk(static_cast<uint4*>(shared)),
        carry(reinterpret_cast<u64*>(chunk + chunks * kWarp)),
        quotient(reinterpret_cast<double*>(carry + chunks * kWarp)),
        y(reinterpret_cast<u32*>(quotient + warps * kWarp)) {}
  static std::size_t bytes(unsigned chunks, unsigned warps, unsigned rows) {
    return kWarp * (chunks * std::size_t{24} + warps * std::size_t{8} + rows * std::size_t{4});
  }
  template <int kPieces>
  __device__ u64 get(unsigned i, unsigned lane) const {
    if constexpr (kPieces == 1) return y[i * kWarp + lane];
    return y[2 * i * kWarp + lane] | static_cast<u64>(y[(2 * i + 1) * kWarp + lane]) << 32;
  }
  template <int kPieces>
  __device__ void put(unsigned i, unsigned lane, u64 value) const {
    y[kPieces * i * kWarp + lane] = static_cast<u32>(value);
    if constexpr (kPieces == 2) y[(2 * i + 1) * kWarp + lane] = static_cast<u32>(value >> 32);
  }
};

template <class W, IcrtMethod kMethod, int kPieces>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 6) icrt_kernel(Icrt<W> a, Limbs limbs) {
  extern __shared__ __align__(16) unsigned char shared[];
  after_predecessor();
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned warps = blockDim.x / kWarp, count = a.s.limb_count;
  const IcrtTile tile(shared, a.chunks, warps);
  const std::size_t at =
      (static_cast<std::size_t>(blockIdx.y) << a.s.log_n) + blockIdx.x * kWarp + lane;
  const std::size_t stride = static_cast<std::size_t>(a.s.batch) << a.s.log_n;

  bool unsure = false;  // whether the integer may lie in [Q, 2Q)
  if constexpr (kMethod == IcrtMethod::product_sum) {
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
    unsure = least != floor(quotient + kError);
    const double v = least < 0 ? 0 : least;
    if (warp == 0) tile.y[(a.rows - 1) * kWarp + lane] = static_cast<u32>(v);
    __syncthreads();
  } else {
    // digit_i = (.. ((x_i - digit_0) / q_0 - digit_1) / q_1 ..) mod q_i: one digit after the other is taken
    // from all limbs that follow.
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
  }

  for (unsigned c = warp; c < a.chunks; c += warps) {
    const uint4* __restrict__ row = a.row + static_cast<std::size_t>(c) * a.rows;
    Sum96 sum[kGroup];
#pragma unroll 4
    for (unsigned r = 0; r < a.rows; ++r) {
      const u32 y = tile.y[r * kWarp + lane];
      const uint4 h = row[r];
      sum[0].add(y, h.x);
      sum[1].add(y, h.y);
      sum[2].add(y, h.z);
      sum[3].add(y, h.w);
    }
#pragma unroll
    for (unsigned i = 1; i < kGroup; ++i) sum[i].add_words(sum[i - 1].high());
    tile.chunk[c * kWarp + lane] = {sum[0].w[0], sum[1].w[0], sum[2].w[0], sum[3].w[0]};
    tile.carry[c * kWarp + lane] = sum[3].high();
  }
  __syncthreads();
  if (warp != 0) return;

  const auto words_of = [&](unsigned c, u64& low, u64& high) {
    const uint4 d = tile.chunk[c * kWarp + lane];
    low = d.x | static_cast<u64>(d.y) << 32;
    high = d.z | static_cast<u64>(d.w) << 32;
  };
  const auto write = [&](unsigned c, u64 low, u64 high) {
    if (2 * c < a.words) a.integers[2 * c * stride + at] = low;
    if (2 * c + 1 < a.words) a.integers[(2 * c + 1) * stride + at] = high;
  };
  u64 carry = 0;
  for (unsigned c = 0; c < a.chunks; ++c) {
    u64 low, high;
    words_of(c, low, high);
    low += carry;
    high += low < carry;
    carry = tile.carry[c * kWarp + lane] + (low < carry && high == 0);
    write(c, low, high);
    if constexpr (kMethod == IcrtMethod::product_sum) {
      tile.chunk[c * kWarp + lane] = {static_cast<u32>(low), static_cast<u32>(low >> 32),
                                      static_cast<u32>(high), static_cast<u32>(high >> 32)};
    }
  }
  if (!unsure) return;
  u64 borrow = 0;
  for (int pass = 0; pass < 2; ++pass) {  // x - Q: whether it is negative; if it is not, its words
    if (pass == 1 && borrow != 0) return;
    borrow = 0;
    for (unsigned c = 0; c < a.chunks; ++c) {
      u64 word[2];
      words_of(c, word[0], word[1]);
      for (int i = 0; i < 2; ++i) {
        const u64 q = a.modulus[2 * c + i], t = word[i] - q;
        const u64 next = (word[i] < q) | (t < borrow);
        word[i] = t - borrow;
        borrow = next;
      }
      if (pass == 1) write(c, word[0], word[1]);
    }
  }
}

void multiply(std::vector<u64>& a, u64 x) {
  u64 carry = 0;
  for (u64& w : a) {
    const arith::uint128 t = static_cast<arith::uint128>(w) * x + carry;
    w = static_cast<u64>(t);
    carry = static_cast<u64>(t >> 64);
  }
}

std::vector<u64> primes_of(const Config& config, std::span<const PrimeIndex> primes) {
  std::vector<u64> q;
  for (const PrimeIndex i : primes) q.push_back(config.primes[i]);
  return q;
}

int pieces_of(const std::vector<u64>& primes) {
  return std::any_of(primes.begin(), primes.end(), [](u64 q) { return q >> 32 != 0; }) ? 2 : 1;
}

void check_words(std::size_t words) {
  require<Unsupported>(words <= kMaxWords, "CRT on the GPU holds integers of up to 4096 bits");
}

}  // namespace

CrtPlan::CrtPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> primes,
                 std::size_t words) {
  check_words(words);
  const auto q = primes_of(config, primes);
  pieces = pieces_of(q);
  const std::size_t groups = (q.size() + kGroup - 1) / kGroup;
  const auto p = static_cast<std::size_t>(pieces);
  std::vector<u32> table(groups * 2 * words * p * kGroup);
  for (std::size_t i = 0; i < q.size(); ++i) {
    const arith::Modulus mod(q[i]);
    u64 power = 1;
    for (std::size_t j = 0; j < 2 * words; ++j, power = mod.mul(power, mod.reduce(u64{1} << 32))) {
      for (std::size_t piece = 0; piece < p; ++piece) {
        table[((i / kGroup * 2 * words + j) * p + piece) * kGroup + i % kGroup] =
            static_cast<u32>(power >> 32 * piece);
      }
    }
  }
  powers = Constant(stream, table.data(), table.size() * sizeof(u32));
}

template <class W>
IcrtPlan<W>::IcrtPlan(const Stream& stream, const Config& config,
                      std::span<const PrimeIndex> primes, std::size_t words, IcrtMethod method) {
  check_words(words);
  const auto q = primes_of(config, primes);
  const std::size_t count = q.size();
  const bool sums = method == IcrtMethod::product_sum;
  pieces = pieces_of(q);
  chunks = static_cast<unsigned>((2 * words + kGroup) / kGroup);  // a word above Q at least
  rows = static_cast<unsigned>(count) * static_cast<unsigned>(pieces) + (sums ? 1 : 0);
  const std::vector<u64> one = [&] {
    std::vector<u64> v(2 * chunks, 0);
    v[0] = 1;
    return v;
  }();
  std::vector<u64> product = one;
  for (const u64 p : q) multiply(product, p);
  require<InvalidArgument>(std::all_of(product.begin() + static_cast<std::ptrdiff_t>(words),
                                       product.end(), [](u64 w) { return w == 0; }),
                           "icrt: the words given cannot hold the modulus");
  modulus = Constant(stream, product.data(), product.size() * 8);

  std::vector<u32> table(std::size_t{rows} * chunks * kGroup);
  const auto set = [&](std::size_t r, const std::vector<u64>& value) {
    for (std::size_t k = 0; k < chunks * kGroup; ++k) {
      table[(k / kGroup * rows + r) * kGroup + k % kGroup] =
          static_cast<u32>(value[k / 2] >> (k % 2 * 32));
    }
  };
  using F = Factor<typename W::R>;
  std::vector<F> f(sums ? count : count * count, F{});
  std::vector<u64> before = one;
  for (std::size_t i = 0; i < count; ++i) {
    const arith::Modulus mod(q[i]);
    std::vector<u64> hat = one;
    u64 hat_mod = 1;
    for (std::size_t j = 0; j < count; ++j) {
      if (j == i) continue;
      const u64 qj = mod.reduce(q[j]);
      if (sums) {
        multiply(hat, q[j]);
        hat_mod = mod.mul(hat_mod, qj);
      } else if (j < i) {
        f[j * count + i] = make_factor<W>(mod.inverse(qj), q[i]);
      }
    }
    if (sums) f[i] = make_factor<W>(mod.inverse(hat_mod), q[i]);
    std::vector<u64> value = sums ? hat : before;
    for (int piece = 0; piece < pieces; ++piece) {
      set(i * static_cast<std::size_t>(pieces) + static_cast<std::size_t>(piece), value);
      multiply(value, u64{1} << 32);
    }
    multiply(before, q[i]);
  }
  if (sums) {  // -Q
    u64 carry = 1;
    for (u64& w : product) {
      w = ~w + carry;
      carry = carry & (w == 0);
    }
    set(rows - 1, product);
  }
  std::vector<double> r;
  for (const u64 p : q) r.push_back(1.0 / static_cast<double>(p));
  reciprocals = Constant(stream, r.data(), r.size() * sizeof(double));
  factors = Constant(stream, f.data(), f.size() * sizeof(F));
  row = Constant(stream, table.data(), table.size() * sizeof(u32));
}

template <class W>
void crt(const Stream& stream, const Tables<W>& t, const CrtPlan& plan, const Shape& s,
         const Limbs& limbs, void* out, const u64* integers, unsigned words, CrtMethod method) {
  if (s.limb_count == 0) return;
  using Prime = typename W::Prime;
  const auto* primes = t.primes.template as<Prime>();
  auto* to = static_cast<typename W::Stored*>(out);
  const unsigned blocks = (1u << s.log_n) / kThreads;
  if (method == CrtMethod::mod) {
    launch(stream, "crt", crt_mod_kernel<W>, dim3(blocks, s.batch, s.limb_count), kThreads, 0, 1, s,
           limbs, primes, to, integers, words);
  } else {
    const unsigned groups = (s.limb_count + kGroup - 1) / kGroup;
    const bool many = (std::size_t{s.batch} * groups << s.log_n) > 2 * kFewThreads;
    auto* kernel = plan.pieces == 1 ? (many ? crt_mul_kernel<W, 1, 2> : crt_mul_kernel<W, 1, 1>)
                                    : (many ? crt_mul_kernel<W, 2, 2> : crt_mul_kernel<W, 2, 1>);
    launch(stream, "crt", kernel, dim3(blocks, s.batch, many ? (groups + 1) / 2 : groups), kThreads,
           0, 1, s, limbs, primes, plan.powers.as<uint4>(), to, integers, words);
  }
}

template <class W>
void icrt(const Stream& stream, const Tables<W>& t, const IcrtPlan<W>& plan, const Shape& s,
          const Limbs& limbs, u64* integers, unsigned words, const void* x, IcrtMethod method) {
  if (s.limb_count == 0) return;
  using F = Factor<typename W::R>;
  const Icrt<W> a{s,
                  t.primes.template as<typename W::Prime>(),
                  plan.factors.template as<F>(),
                  plan.reciprocals.template as<double>(),
                  plan.row.template as<uint4>(),
                  plan.modulus.template as<u64>(),
                  static_cast<const typename W::Stored*>(x),
                  integers,
                  plan.chunks,
                  plan.rows,
                  words};
  constexpr auto kSum = IcrtMethod::product_sum, kGarner = IcrtMethod::garner;
  auto* kernel = method == kSum
                     ? (plan.pieces == 1 ? icrt_kernel<W, kSum, 1> : icrt_kernel<W, kSum, 2>)
                     : (plan.pieces == 1 ? icrt_kernel<W, kGarner, 1> : icrt_kernel<W, kGarner, 2>);
  const unsigned warps = std::min(kMaxWarps, plan.chunks);
  const std::size_t bytes = IcrtTile::bytes(plan.chunks, warps, plan.rows);
  launch(stream, "icrt", kernel, dim3((1u << s.log_n) / kWarp, s.batch), warps * kWarp, bytes, 1, a,
         limbs);
}

#define JALI_INSTANTIATE(W)                                                                \
  template struct IcrtPlan<W>;                                                             \
  template void crt<W>(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&,      \
                       const Limbs&, void*, const u64*, unsigned, CrtMethod);              \
  template void icrt<W>(const Stream&, const Tables<W>&, const IcrtPlan<W>&, const Shape&, \
                        const Limbs&, u64*, unsigned, const void*, IcrtMethod);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
