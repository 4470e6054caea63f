// Modular arithmetic on the device, one policy a word. A policy works on a register type R:
//   w32: unsigned 32-bit, Shoup; w64: unsigned 64-bit, Shoup; w52: FP64 fused multiply-add.
// "Lazy" values of w32 and w64 lie in [0, 4q); of w52 in (-4q, 4q), exact as q < 2^50. Stored
// residues are canonical, in [0, q); canonical() stores what is so already.
#pragma once

#include <cstdint>

namespace jali::backend::cuda {

/// Constants of a prime. A double w beside w / q serves w52; (w, floor(w beta / q)) the others.
template <class R>
struct alignas(2 * sizeof(R)) Factor {
  R w, companion;
};

// min as an instruction: chains of it in plain C++ make the compiler's loop analysis exponential.
__device__ inline std::uint32_t least(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("min.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ inline std::uint64_t least(std::uint64_t a, std::uint64_t b) {
  std::uint64_t r;
  asm("min.u64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));
  return r;
}

struct W32 {
  using Stored = std::uint32_t;
  using R = std::uint32_t;
  using Twiddle = Factor<R>;  // as stored in the tables
  static __device__ Factor<R> twiddle(const Twiddle& t) { return t; }
  struct Prime {
    R q, minus_2q;  // -2q modulo 2^32: one instruction adds it and takes the minimum
    Factor<R> beta;  // 2^32 mod q
    Factor<R> one;  // 1, floor(2^32 / q)
    R low;  // floor(2^64 / q) modulo 2^32: one.companion is its upper half
  };

  static __device__ R load(Stored x) { return x; }
  static __device__ Stored canonical(R x) { return x; }
  static __device__ Stored store(R x, const Prime& p) { return reduce4(x, p); }
  static __device__ R reduce4(R x, const Prime& p) {
    x = least(x, x + p.minus_2q);
    return least(x, x - p.q);
  }
  // [0, 2q) for any x.
  static __device__ R reduce(R x, const Prime& p) { return x - __umulhi(x, p.one.companion) * p.q; }
  static __device__ R mul_lazy(R x, Factor<R> f, const Prime& p) {
    return x * f.w - __umulhi(x, f.companion) * p.q;
  }
  // x times a twiddle: from any value of a group to a value that a butterfly takes.
  static __device__ R times(R x, Factor<R> f, const Prime& p) { return mul_lazy(x, f, p); }
  // x, y in [0, 4q) -> x + y w, x - y w in [0, 4q)
  static __device__ void butterfly(R& x, R& y, Factor<R> f, const Prime& p) {
    const R u = least(x, x + p.minus_2q), v = mul_lazy(y, f, p);
    x = u + v;
    y = u - v - p.minus_2q;
  }
  // The same from x in [0, 2q), of any y.
  static __device__ void first_butterfly(R& x, R& y, Factor<R> f, const Prime& p) {
    const R u = x, v = mul_lazy(y, f, p);
    x = u + v;
    y = u - v - p.minus_2q;
  }
  // x, y in [0, 2q) -> x + y, (x - y) w in [0, 2q), at any stage of a group
  template <int, int>
  static __device__ void inverse_butterfly(R& x, R& y, Factor<R> f, const Prime& p) {
    const R u = x + y, v = x - y - p.minus_2q;
    x = least(u, u + p.minus_2q);
    y = mul_lazy(v, f, p);
  }
  // To the range that four butterflies may start from.
  static __device__ void settle_forward(R&, const Prime&) {}
  static __device__ void settle_inverse(R&, const Prime&) {}

  /// Sum of products of canonical residues: at most kTerms, then it has to be reduced, s =
  /// sum_of(total(s)).
  struct Sum {
    std::uint64_t s = 0;
  };
  static constexpr int kTerms = 15;  // products in a sum that total() takes
  static constexpr unsigned kFold = kTerms - 1;
  static __device__ void add(Sum& s, R a, R b, const Prime&) { s.s += std::uint64_t{a} * b; }
  // [0, 4q): of s floor(2^64 / q) / 2^64, less than one below s / q, three fractions are left out.
  // Modulo 2^32.
  static __device__ R total_lazy(const Sum& s, const Prime& p) {
    const R high = static_cast<R>(s.s >> 32), low = static_cast<R>(s.s);
    const R quotient =
        __umulhi(high, p.low) + high * p.one.companion + __umulhi(low, p.one.companion);
    return low - quotient * p.q;
  }
  static __device__ R total(const Sum& s, const Prime& p) {  // canonical
    return reduce4(total_lazy(s, p), p);
  }
  static __device__ Sum sum_of(R x) { return {x}; }
  static __device__ R add_mod(R a, R b, const Prime& p) { return least(a + b, a + b - p.q); }
  static __device__ R sub_mod(R a, R b, const Prime& p) { return least(a - b, a - b + p.q); }
};

struct W64 {
  using Stored = std::uint64_t;
  using R = std::uint64_t;
  using Twiddle = Factor<R>;  // as stored in the tables
  static __device__ Factor<R> twiddle(const Twiddle& t) { return t; }
  struct Prime {
    R q;
    Factor<R> beta;
    Factor<R> one;
  };

  static __device__ R load(Stored x) { return x; }
  static __device__ Stored canonical(R x) { return x; }
  static __device__ Stored store(R x, const Prime& p) { return reduce4(x, p.q); }
  static __device__ R reduce4(R x, R q) {
    x = least(x, x - 2 * q);
    return least(x, x - q);
  }
  static __device__ R mul_lazy(R x, Factor<R> f, const Prime& p) {
    return x * f.w - __umul64hi(x, f.companion) * p.q;
  }
  static __device__ R times(R x, Factor<R> f, const Prime& p) { return mul_lazy(x, f, p); }
  static __device__ void butterfly(R& x, R& y, Factor<R> f, const Prime& p) {
    const R u = least(x, x - 2 * p.q), v = mul_lazy(y, f, p);
    x = u + v;
    y = u - v + 2 * p.q;
  }
  template <int, int>
  static __device__ void inverse_butterfly(R& x, R& y, Factor<R> f, const Prime& p) {
    const R u = x + y, v = x - y + 2 * p.q;
    x = least(u, u - 2 * p.q);
    y = mul_lazy(v, f, p);
  }
  // To the range that four butterflies may start from.
  static __device__ void settle_forward(R&, const Prime&) {}
  static __device__ void settle_inverse(R&, const Prime&) {}

  struct Sum {
    std::uint64_t lo = 0, hi = 0;
  };
  static constexpr int kTerms = 15;  // products in a sum that total() takes
  static constexpr unsigned kFold = kTerms - 1;
  static __device__ void add(Sum& s, R a, R b, const Prime&) {
    const std::uint64_t lo = a * b;
    s.lo += lo;
    s.hi += __umul64hi(a, b) + (s.lo < lo);
  }
  static __device__ R total_lazy(const Sum& s, const Prime& p) {
    return mul_lazy(s.hi, p.beta, p) + mul_lazy(s.lo, p.one, p);
  }
  static __device__ R total(const Sum& s, const Prime& p) { return reduce4(total_lazy(s, p), p.q); }
  static __device__ Sum sum_of(R x) { return {x, 0}; }
  static __device__ R add_mod(R a, R b, const Prime& p) { return least(a + b, a + b - p.q); }
  static __device__ R sub_mod(R a, R b, const Prime& p) { return least(a - b, a - b + p.q); }
};

struct W52 {
  using Stored = std::uint64_t;
  using R = double;
  using Twiddle = double;  // w alone: its quotient comes from the product for the same operations
  static __device__ Twiddle twiddle(Twiddle t) { return t; }
  struct Prime {
    R q, inverse;  // 1 / q rounded
  };

  // Integers below 2^52 to doubles and back through the bits of 2^52 + x: no conversion pipe.
  static __device__ R load(Stored x) {
    return __longlong_as_double(static_cast<long long>(x | 0x4330000000000000ull)) - 0x1p52;
  }
  static __device__ Stored to_bits(R x) {
    return static_cast<Stored>(__double_as_longlong(x + 0x1p52)) & 0x000fffffffffffffull;
  }
  static __device__ Stored canonical(R x) { return to_bits(x); }
  static __device__ Stored store(R x, const Prime& p) {
    x = reduce(x, p);
    return to_bits(x < 0 ? x + p.q : x);
  }
  // |x| < 2^53 -> |result| <= q / 2 + 1
  static __device__ R reduce(R x, const Prime& p) { return __fma_rn(-rint(x * p.inverse), p.q, x); }
  // |x| < 8q, |w| < q: result congruent, |result| < 1.5 q. h and the quotient's multiple of q are
  // integers a few q apart, so that their difference is exact; so is its sum with l.
  static __device__ R mul(R x, R w, const Prime& p) {
    const R h = x * w;
    const R l = __fma_rn(x, w, -h);
    return __fma_rn(-rint(h * p.inverse), p.q, h) + l;
  }
  static __device__ R mul_lazy(R x, Factor<R> f, const Prime& p) {
    const R h = x * f.w;
    const R l = __fma_rn(x, f.w, -h);
    return __fma_rn(-rint(x * f.companion), p.q, h) + l;
  }
  static __device__ R times(R x, Twiddle w, const Prime& p) { return mul(x, w, p); }
  // From |x| <= q / 2 + 1: |x| grows by at most 1.5 q a stage, to 8 q after five.
  static __device__ void butterfly(R& x, R& y, Twiddle w, const Prime& p) {
    const R v = mul(y, w, p), u = x;
    x = u + v;
    y = u - v;
  }
  // Stage kStage of a group of kStages, at most 5: sums double from q / 2 + 1, products start
  // at 1.5 q, and the third stage restores the range; all stay within 6 q.
  template <int kStage, int kStages>
  static __device__ void inverse_butterfly(R& x, R& y, Twiddle w, const Prime& p) {
    static_assert(kStages <= 5);
    const R u = x + y, v = x - y;
    x = kStage == 2 && kStages > 3 ? reduce(u, p) : u;
    y = mul(v, w, p);
  }
  static __device__ void settle_forward(R& x, const Prime& p) { x = reduce(x, p); }
  static __device__ void settle_inverse(R& x, const Prime& p) { x = reduce(x, p); }

  struct Sum {
    R s = 0;  // of reduced products: |s| < terms * q
  };
  static constexpr int kTerms = 4;
  static constexpr unsigned kFold = kTerms - 1;
  static __device__ void add(Sum& s, R a, R b, const Prime& p) { s.s += mul(a, b, p); }
  static __device__ R total_lazy(const Sum& s, const Prime& p) { return reduce(s.s, p); }
  static __device__ R total(const Sum& s, const Prime& p) {
    const R x = reduce(s.s, p);
    return x < 0 ? x + p.q : x;
  }
  static __device__ Sum sum_of(R x) { return {x}; }
  static __device__ R add_mod(R a, R b, const Prime& p) {
    const R s = a + b;
    return s >= p.q ? s - p.q : s;
  }
  static __device__ R sub_mod(R a, R b, const Prime& p) {
    const R s = a - b;
    return s < 0 ? s + p.q : s;
  }
};

/// a b mod q, canonical in and out.
template <class W>
__device__ typename W::R mul_mod(typename W::R a, typename W::R b, const typename W::Prime& p) {
  typename W::Sum s;
  W::add(s, a, b, p);
  return W::total(s, p);
}

/// sum_c += s x_c, c = 0, 1: a residue of both polynomials of a ciphertext times a scalar of its
/// limb. Counts as one term of each sum.
template <class W>
__device__ __forceinline__ void add_scaled(typename W::Sum& sum0, typename W::Sum& sum1,
                                           typename W::R x0, typename W::R x1, typename W::R s,
                                           const typename W::Prime& p) {
  W::add(sum0, x0, s, p);
  W::add(sum1, x1, s, p);
}

}  // namespace jali::backend::cuda
