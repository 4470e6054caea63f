// Residues modulo primes q of 30 bits, on integer units alone; a test also runs this on the host.
//
// A transform (forward) takes the coefficients of a polynomial modulo X^N + 1 to its values at psi^(2 r + 1), with psi a primitive
// root of order 2N: point p is that of r = the log2(N) bits of p reversed. Node j = 2^d + i of the tree of remainders, i < 2^d,
// splits a polynomial modulo X^(2m) - c^2 into those modulo X^m - c and X^m + c, with c = psi^(the log2(N) bits of j reversed).
// The inverse is N times too large: who prepares the key takes that into it.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define JALI_HD __host__ __device__ __forceinline__
#else
#define JALI_HD inline
#endif
#define JALI_PRAGMA(text) _Pragma(#text)
#ifdef __CUDA_ARCH__
#define JALI_UNROLL JALI_PRAGMA(unroll)
#else
#define JALI_UNROLL
#endif

namespace jali::backend::cuda::exact {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// A factor w < q, and floor(2^32 w / q).
struct alignas(8) Factor {  // one load
  u32 w, companion;
};
struct Prime {
  u32 q;  // in (2^29, 2^30)
  u32 inverse;  // of q modulo 2^32
  u32 share;  // floor(2^61 / q)
  Factor into_key;  // by which the key is multiplied, see tables.h
  u64 others;  // the product of the other primes, modulo 2^64
};

// In place of a comparison, minima take what would have been negative, because that is large modulo 2^32.
JALI_HD u32 least(u32 a, u32 b) {
#ifdef __CUDA_ARCH__
  return min(a, b);
#else
  return a < b ? a : b;
#endif
}
JALI_HD u64 least(u64 a, u64 b) {
#ifdef __CUDA_ARCH__
  return min(static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
#else
  return a < b ? a : b;
#endif
}
JALI_HD u32 upper_half(u64 x) { return static_cast<u32>(x >> 32); }
JALI_HD u32 high_product(u32 a, u32 b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return upper_half(u64{a} * b);
#endif
}

/// [0, 2q) -> [0, q), and [0, 4q) -> [0, q)
JALI_HD u32 canonical2(u32 x, u32 q) { return least(x, x - q); }
JALI_HD u32 canonical4(u32 x, u32 q) { return canonical2(least(x, x - 2 * q), q); }
/// x w modulo q in [0, 2q), for any x (Shoup).
JALI_HD u32 times(u32 x, Factor f, u32 q) {
  return x * f.w + high_product(x, f.companion) * (0 - q);
}
/// x in [0, 4q), any y -> x + y w, x - y w in [0, 4q) (Harvey)
JALI_HD void forward_butterfly(u32& x, u32& y, Factor f, u32 q) {
  const u32 u = least(x, x - 2 * q), v = times(y, f, q);
  x = u + v;
  y = u - v + 2 * q;
}
/// x, y in [0, 2q) -> x + y, (x - y) w in [0, 2q)
JALI_HD void inverse_butterfly(u32& x, u32& y, Factor f, u32 q) {
  const u32 u = x + y, v = x - y + 2 * q;
  x = least(u, u - 2 * q);
  y = times(v, f, q);
}

/// Sums of products of canonical residues. Of kProducts products it has to be folded; it then holds as many more.
constexpr unsigned kProducts = 8;
JALI_HD u64 fold(u64 sum, u32 q) {  // below 16 q^2 < 2^64 -> below 8 q^2
  return least(sum, sum - 8 * (u64{q} * q));
}
/// sum / 2^32 modulo q, in (0, 2q) (Montgomery). sum < 16 q^2. The last step needs sum < 2^32 q, which 4 q^2 is not above.
JALI_HD u32 total(u64 sum, const Prime& p) {
  sum = fold(sum, p.q);
  sum = least(sum, sum - 4 * (u64{p.q} * p.q));
  const u32 m = static_cast<u32>(sum) * p.inverse;
  return upper_half(sum) - high_product(m, p.q) + p.q;
}

/// A signed word modulo q, canonical.
JALI_HD u32 residue(std::int64_t word, u32 q) {
  const std::int64_t r = word % static_cast<std::int64_t>(q);
  return static_cast<u32>(r < 0 ? r + static_cast<std::int64_t>(q) : r);
}

// Back from residues. With s_i = x (M / q_i)^-1 mod q_i, M the product of all primes, x = sum_i s_i M / q_i - v M with the integer
// v that is nearest to sum_i s_i / q_i, because |x| < M / 2. The sum of the fractions is taken in units of 2^-29. What is cut off
// each of at most 5 of them is less than 1.25 units, so that v is right if |x| < (1/2 - 7 * 2^-29) M.
constexpr unsigned kMostPrimes = 5;
JALI_HD u32 fraction(u32 s, const Prime& p) { return high_product(s, p.share); }
JALI_HD u32 nearest_integer(u32 fractions) { return (fractions + (1u << 28)) >> 29; }

/// Where word i of a polynomial lies, so that strides of 8 meet every bank of shared memory. If i or j is a multiple of 8,
/// padded(i + j) = padded(i) + padded(j).
JALI_HD constexpr u32 padded(u32 i) { return i + (i >> 3); }

/// `Levels` levels of the tree from depth `depth` on, of a polynomial of 2^log_n coefficients, with log_n - depth - Levels a multiple
/// of 3. t: one of 2^(log_n - Levels) tasks. x = load(i, padded(i)); store(i, padded(i), x): coefficients i, of which a task loads
/// and stores 2^Levels of its own. Their stride is a multiple of 8, or they are 8 neighbours, the first at a multiple of 8.
template <int Levels, bool inverse, class Load, class Store>
JALI_HD void pass(const Factor* tree, u32 q, u32 log_n, u32 depth, u32 t, const Load& load,
                  const Store& store) {
  constexpr int kSize = 1 << Levels;
  const u32 log_stride = log_n - depth - Levels, stride = 1u << log_stride;
  const u32 node = t >> log_stride, base = (node << (log_stride + Levels)) + (t & (stride - 1));
  const u32 first = padded(base), next = padded(stride);
  u32 x[kSize];
  JALI_UNROLL
  for (u32 i = 0; i < kSize; ++i) x[i] = load(base + i * stride, first + i * next);
  JALI_UNROLL
  for (int l = 0; l < Levels; ++l) {
    const int s = inverse ? Levels - 1 - l : l;
    const Factor* const nodes = tree + (1u << (depth + static_cast<u32>(s))) + (node << s);
    const int size = kSize >> s, half = size / 2;
    JALI_UNROLL
    for (int b = 0; b < 1 << s; ++b) {
      const Factor f = nodes[b];
      JALI_UNROLL
      for (int i = 0; i < half; ++i) {
        u32 &lo = x[b * size + i], &hi = x[b * size + half + i];
        if (inverse) {
          inverse_butterfly(lo, hi, f, q);
        } else {
          forward_butterfly(lo, hi, f, q);
        }
      }
    }
  }
  JALI_UNROLL
  for (u32 i = 0; i < kSize; ++i) store(base + i * stride, first + i * next, x[i]);
}

/// Levels of the first pass of a forward transform and of the last of an inverse one, from 1 to 3; the other passes have three.
JALI_HD u32 first_levels(u32 log_n) { return log_n % 3 == 0 ? 3 : log_n % 3; }
template <bool inverse, class Load, class Store>
JALI_HD void first_pass(const Factor* tree, u32 q, u32 log_n, u32 t, const Load& load,
                        const Store& store) {
  switch (first_levels(log_n)) {
    case 1: return pass<1, inverse>(tree, q, log_n, 0, t, load, store);
    case 2: return pass<2, inverse>(tree, q, log_n, 0, t, load, store);
    default: return pass<3, inverse>(tree, q, log_n, 0, t, load, store);
  }
}

JALI_HD u32 reversed(u32 p, u32 bits) {
#ifdef __CUDA_ARCH__
  return __brev(p) >> (32 - bits);
#else
  u32 r = 0;
  for (u32 i = 0; i < bits; ++i) r |= (p >> i & 1) << (bits - 1 - i);
  return r;
#endif
}

}  // namespace jali::backend::cuda::exact
