// Residues modulo primes q of 27 bits, on integer units alone; a test also runs this on the host.
//
// A word holds 32 q. So a forward transform reduces no sum after its first pass, products by points
// take its values as they are, and an inverse pass reduces its results only.
//
// A transform (forward) takes the coefficients of a polynomial modulo X^N + 1 to its values at
// psi^(2 r + 1), with psi a primitive root of order 2N: point p is that of r = the log2(N) bits of
// p reversed. Node j = 2^d + i of the tree of remainders, i < 2^d, splits a polynomial modulo
// X^(2m) - c^2 into those modulo X^m - c and X^m + c, with c = psi^(the log2(N) bits of j
// reversed). The inverse is N times too large: who prepares the key takes that into it.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/host_device.h"

namespace jali::backend::cuda::exact {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// A factor w < q, and floor(2^32 w / q).
struct alignas(8) Factor {  // one load
  u32 w, companion;
};
struct Prime {
  u32 q;  // in (2^31 / 17, 2^27)
  u32 bound[3];  // 2q, 4q, 8q, in memory, so that each is one operand
  u32 inverse;  // of q modulo 2^32
  u32 share;  // floor(2^58 / q)
  u32 unit;  // floor(2^32 / q), the companion of the factor 1
  u32 lift;  // 9 q, above 2^30: a digit of at most 2^30 becomes one of [0, 18 q)
  Factor into_key;  // by which the key is multiplied, see tables.h
  u64 others;  // the product of the other primes, modulo 2^64
};

// In place of a comparison, minima take what would have been negative, because that is large modulo
// 2^32.
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

/// [0, 2q) -> [0, q)
JALI_HD u32 canonical(u32 x, u32 q) { return least(x, x - q); }
/// x w modulo q in [0, 2q), for any x (Shoup).
JALI_HD u32 times(u32 x, Factor f, u32 q) {
  return x * f.w + high_product(x, f.companion) * (0 - q);
}
/// Any x -> [0, 2q)
JALI_HD u32 reduced(u32 x, const Prime& p) { return x + high_product(x, p.unit) * (0 - p.q); }
/// x, any y -> x + y w, x - y w, each at most x + 2q
JALI_HD void forward_butterfly(u32& x, u32& y, Factor f, const Prime& p) {
  const u32 u = x, v = times(y, f, p.q);
  x = u + v;
  y = u - v + p.bound[0];
}
/// x, y in [0, bound), bound <= 16 q a multiple of q -> x + y in [0, 2 bound), (x - y) w in [0, 2q)
JALI_HD void inverse_butterfly(u32& x, u32& y, Factor f, u32 q, u32 bound) {
  const u32 u = x + y, v = x - y + bound;
  x = u;
  y = times(v, f, q);
}

/// So many products of any word and a canonical residue may be summed: each is below 2^59.
constexpr unsigned kProducts = 16;
/// sum / 2^32 modulo q (Montgomery), in (0, (c + 1) q) if sum < c 2^32 q.
JALI_HD u32 total(u64 sum, const Prime& p) {
  const u32 m = static_cast<u32>(sum) * p.inverse;
  return upper_half(sum) - high_product(m, p.q) + p.q;
}

/// A signed word modulo q, canonical.
JALI_HD u32 residue(std::int64_t word, u32 q) {
  const std::int64_t r = word % static_cast<std::int64_t>(q);
  return static_cast<u32>(r < 0 ? r + static_cast<std::int64_t>(q) : r);
}

// Back from residues. With s_i = x (M / q_i)^-1 mod q_i, M the product of all primes, x = sum_i s_i
// M / q_i - v M with the integer v that is nearest to sum_i s_i / q_i, because |x| < M / 2. The sum
// of the fractions is taken in units of 2^-26. What is cut off each of at most 5 of them is less
// than 1.25 units, so that v is right if |x| < (1/2 - 7 * 2^-26) M.
constexpr unsigned kMostPrimes = 5;
JALI_HD u32 fraction(u32 s, const Prime& p) { return high_product(s, p.share); }
JALI_HD u32 nearest_integer(u32 fractions) { return (fractions + (1u << 25)) >> 26; }

/// Where word i of a polynomial lies, so that strides of 8 meet every bank of shared memory. If i
/// or j is a multiple of 8, padded(i + j) = padded(i) + padded(j).
JALI_HD constexpr u32 padded(u32 i) { return i + (i >> 3); }

/// The factors of neighbouring nodes, the first at an even place if there are several.
template <int Count>
JALI_HD void load(Factor (&f)[Count], const Factor* nodes) {
#ifdef __CUDA_ARCH__
  if constexpr (Count > 1) {
    uint4 pair[Count / 2];
    JALI_UNROLL
    for (int b = 0; b < Count; b += 2) {
      pair[b / 2] = __ldg(reinterpret_cast<const uint4*>(nodes + b));
      f[b] = {pair[b / 2].x, pair[b / 2].y};
      f[b + 1] = {pair[b / 2].z, pair[b / 2].w};
    }
  } else {
    const uint2 one = __ldg(reinterpret_cast<const uint2*>(nodes));
    f[0] = {one.x, one.y};
  }
#else
  for (int b = 0; b < Count; ++b) f[b] = nodes[b];
#endif
}
/// 8 words from a multiple of 8 on.
JALI_HD void load(u32 (&x)[8], const u32* from) {
#ifdef __CUDA_ARCH__
  const uint4 lo = reinterpret_cast<const uint4*>(from)[0],
              hi = reinterpret_cast<const uint4*>(from)[1];
  x[0] = lo.x, x[1] = lo.y, x[2] = lo.z, x[3] = lo.w;
  x[4] = hi.x, x[5] = hi.y, x[6] = hi.z, x[7] = hi.w;
#else
  for (int i = 0; i < 8; ++i) x[i] = from[i];
#endif
}

/// Level S of a pass of `Levels`: the butterflies of the nodes 2^(depth + S) + node 2^S + b, b <
/// 2^S.
template <int Levels, int S, bool inverse>
JALI_HD void level(u32 (&x)[1 << Levels], const Factor* tree, const Prime& p, u32 depth, u32 node) {
  constexpr int kNodes = 1 << S, kHalf = (1 << Levels) / kNodes / 2;
  Factor f[kNodes];
  load(f, tree + (1u << (depth + S)) + (node << S));
  JALI_UNROLL
  for (int b = 0; b < kNodes; ++b) {
    JALI_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      u32 &lo = x[2 * b * kHalf + i], &hi = x[(2 * b + 1) * kHalf + i];
      if constexpr (inverse) {
        inverse_butterfly(lo, hi, f[b], p.q, p.bound[Levels - 1 - S]);
      } else {
        forward_butterfly(lo, hi, f[b], p);
      }
    }
  }
}
/// `Levels` levels below a node at depth `depth`, on coefficients of equal distances. Forward: from
/// [0, B) to [0, B + 2 Levels q), below 2^32. Inverse: from [0, 2q) to [0, 2q).
template <int Levels, bool inverse>
JALI_HD void levels(u32 (&x)[1 << Levels], const Factor* tree, const Prime& p, u32 depth,
                    u32 node) {
  if constexpr (!inverse) {
    level<Levels, 0, inverse>(x, tree, p, depth, node);
    if constexpr (Levels > 1) level<Levels, 1, inverse>(x, tree, p, depth, node);
    if constexpr (Levels > 2) level<Levels, 2, inverse>(x, tree, p, depth, node);
  } else {
    if constexpr (Levels > 2) level<Levels, 2, inverse>(x, tree, p, depth, node);
    if constexpr (Levels > 1) level<Levels, 1, inverse>(x, tree, p, depth, node);
    level<Levels, 0, inverse>(x, tree, p, depth, node);
    // Bit Levels - 1 - s of i says what the level s made of x[i]: 0, a sum; 1, a product, below 2q.
    // The last of them is bit Levels - 1.
    JALI_UNROLL
    for (int i = 0; i < 1 << (Levels - 1); ++i) {
      int sums = 0;
      while (sums < Levels && (i >> (Levels - 1 - sums) & 1) == 0) ++sums;
      JALI_UNROLL
      for (int half = sums; half-- > 0;) x[i] = least(x[i], x[i] - p.bound[half]);
    }
  }
}

/// `Levels` levels of the tree from depth `depth` on, of a polynomial of 2^log_n coefficients, with
/// log_n - depth - Levels a multiple of 3. t: one of 2^(log_n - Levels) tasks. x = load(i,
/// padded(i)); store(i, padded(i), x): coefficients i, of which a task loads and stores 2^Levels of
/// its own. Their stride is a multiple of 8, or they are 8 neighbours, the first at a multiple
/// of 8.
template <int Levels, bool inverse, class Load, class Store>
JALI_HD void pass(const Factor* tree, const Prime& p, u32 log_n, u32 depth, u32 t, const Load& load,
                  const Store& store) {
  constexpr u32 kSize = 1 << Levels;
  const u32 log_stride = log_n - depth - Levels, stride = 1u << log_stride;
  const u32 node = t >> log_stride, base = (node << (log_stride + Levels)) + (t & (stride - 1));
  const u32 first = padded(base), next = padded(stride);
  u32 x[kSize];
  JALI_UNROLL
  for (u32 i = 0; i < kSize; ++i) x[i] = load(base + i * stride, first + i * next);
  levels<Levels, inverse>(x, tree, p, depth, node);
  JALI_UNROLL
  for (u32 i = 0; i < kSize; ++i) store(base + i * stride, first + i * next, x[i]);
}

/// Levels of the first pass of a forward transform and of the last of an inverse one, from 1 to 3;
/// the other passes have three.
JALI_HD u32 first_levels(u32 log_n) { return log_n % 3 == 0 ? 3 : log_n % 3; }
template <bool inverse, class Load, class Store>
JALI_HD void first_pass(const Factor* tree, const Prime& p, u32 log_n, u32 t, const Load& load,
                        const Store& store) {
  switch (first_levels(log_n)) {
    case 1: return pass<1, inverse>(tree, p, log_n, 0, t, load, store);
    case 2: return pass<2, inverse>(tree, p, log_n, 0, t, load, store);
    default: return pass<3, inverse>(tree, p, log_n, 0, t, load, store);
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
