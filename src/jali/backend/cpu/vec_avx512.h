// Vector classes for AVX-512 (F, DQ, BW, VL), and for w52 with IFMA: see vec_scalar.h for what each
// function means.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>

#include <cstdint>

#include "jali/backend/cpu/inline.h"

namespace jali::backend::cpu {

/// w32: sixteen lanes, beta = 2^32.
struct Avx512W32 {
  using T = std::uint32_t;
  using R = __m512i;
  struct F {
    __m512d lo, hi;  // lanes 0 to 7, 8 to 15
  };
  static constexpr const char* kIsa = "avx512";
  static constexpr int kLanes = 16;
  static constexpr int kBetaBits = 32;
  static constexpr int kLazy = 2;
  static constexpr int kLogRadix = 3;
  static constexpr int kGroups = 2;
  static constexpr int kLeafGroups = 1;
  struct Acc {
    R even, odd;  // 64-bit sums of the even and the odd lanes
  };

  JALI_INLINE static R load(const T* p) { return _mm512_loadu_si512(p); }
  JALI_INLINE static void store(T* p, R x) { _mm512_storeu_si512(p, x); }
  JALI_INLINE static R set1(std::uint64_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  JALI_INLINE static R add(R a, R b) { return _mm512_add_epi32(a, b); }
  JALI_INLINE static R sub(R a, R b) { return _mm512_sub_epi32(a, b); }
  JALI_INLINE static R reduce_once(R x, R m) { return _mm512_min_epu32(x, sub(x, m)); }
  JALI_INLINE static R add_if_negative(R d, R q) { return _mm512_min_epu32(d, add(d, q)); }
  JALI_INLINE static R odd(R x) { return _mm512_srli_epi64(x, 32); }
  /// High words of `even` in the even lanes, of `odd` in the odd ones.
  JALI_INLINE static R highs(R even, R odd) {
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_CDAB);
  }
  JALI_INLINE static R high(R x, R y) {
    return highs(_mm512_mul_epu32(x, y), _mm512_mul_epu32(odd(x), odd(y)));
  }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, high(x, quotient), q);
  }
  JALI_INLINE static R mul_high(R x, R quotient) { return high(x, quotient); }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) {
    return sub(_mm512_mullo_epi32(x, w), _mm512_mullo_epi32(h, q));
  }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) {
    return sub(x, _mm512_mullo_epi32(high(x, quotient), q));
  }
  JALI_INLINE static Acc acc_set(R r) {
    return {_mm512_and_si512(r, _mm512_set1_epi64(0xffffffff)), odd(r)};
  }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    acc.even = _mm512_add_epi64(acc.even, _mm512_mul_epu32(a, b));
    acc.odd = _mm512_add_epi64(acc.odd, _mm512_mul_epu32(odd(a), odd(b)));
  }
  /// b is the same in all lanes.
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) {
    acc.even = _mm512_add_epi64(acc.even, _mm512_mul_epu32(a, b));
    acc.odd = _mm512_add_epi64(acc.odd, _mm512_mul_epu32(odd(a), b));
  }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) {
    hi = highs(acc.even, acc.odd);
    lo = _mm512_mask_shuffle_epi32(acc.even, 0xaaaa, acc.odd, _MM_PERM_CDAB);
  }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    const R a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 8);
    const R evens = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    const R odds = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
    const R even = _mm512_permutex2var_epi64(a, evens, b);
    const R odd_ones = _mm512_permutex2var_epi64(a, odds, b);
    sign = highs(even, odd_ones);
    return {_mm512_abs_epi64(even), _mm512_abs_epi64(odd_ones)};
  }
  JALI_INLINE static R select(R a, R b, R by) {
    return _mm512_mask_mov_epi32(a, _mm512_movepi32_mask(by), b);
  }
  JALI_INLINE static F f_set1(double x) { return {_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    const __m512d lo = _mm512_cvtepu32_pd(_mm512_castsi512_si256(y));
    const __m512d hi = _mm512_cvtepu32_pd(_mm512_extracti64x4_epi64(y, 1));
    return {_mm512_fmadd_pd(lo, inverse.lo, s.lo), _mm512_fmadd_pd(hi, inverse.hi, s.hi)};
  }
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtepi32_epi16(_mm512_cvttpd_epi32(s.lo)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8),
                     _mm256_cvtepi32_epi16(_mm512_cvttpd_epi32(s.hi)));
  }
  JALI_INLINE static R load_small(const std::uint16_t* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  JALI_INLINE static R permute(R x, R lanes) { return _mm512_permutexvar_epi32(lanes, x); }
  JALI_INLINE static void transpose(R* v) {
    R t[16], u[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
      t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      u[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
      u[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
      u[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
      u[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    // A 4 x 4 transposition of 128-bit lanes.
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const R a = _mm512_shuffle_i32x4(u[c], u[4 + c], 0x88);
      const R b = _mm512_shuffle_i32x4(u[8 + c], u[12 + c], 0x88);
      const R d = _mm512_shuffle_i32x4(u[c], u[4 + c], 0xdd);
      const R e = _mm512_shuffle_i32x4(u[8 + c], u[12 + c], 0xdd);
      v[c] = _mm512_shuffle_i32x4(a, b, 0x88);
      v[4 + c] = _mm512_shuffle_i32x4(d, e, 0x88);
      v[8 + c] = _mm512_shuffle_i32x4(a, b, 0xdd);
      v[12 + c] = _mm512_shuffle_i32x4(d, e, 0xdd);
    }
  }
};

/// What w52 and w64 share: eight lanes of 64 bits.
struct Avx512Lanes64 {
  using T = std::uint64_t;
  using R = __m512i;
  using F = __m512d;
  static constexpr int kLanes = 8;
  static constexpr int kLogRadix = 3;
  struct Acc {
    R lo, hi;
  };

  JALI_INLINE static R load(const T* p) { return _mm512_loadu_si512(p); }
  JALI_INLINE static void store(T* p, R x) { _mm512_storeu_si512(p, x); }
  JALI_INLINE static R set1(std::uint64_t x) {
    return _mm512_set1_epi64(static_cast<long long>(x));
  }
  JALI_INLINE static R add(R a, R b) { return _mm512_add_epi64(a, b); }
  JALI_INLINE static R sub(R a, R b) { return _mm512_sub_epi64(a, b); }
  JALI_INLINE static R reduce_once(R x, R m) { return _mm512_min_epu64(x, sub(x, m)); }
  JALI_INLINE static R add_if_negative(R d, R q) { return _mm512_min_epu64(d, add(d, q)); }
  JALI_INLINE static Acc acc_set(R r) { return {r, _mm512_setzero_si512()}; }
  JALI_INLINE static R select(R a, R b, R by) {
    return _mm512_mask_mov_epi64(a, _mm512_movepi64_mask(by), b);
  }
  JALI_INLINE static F f_set1(double x) { return _mm512_set1_pd(x); }
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    return _mm512_fmadd_pd(_mm512_cvtepu64_pd(y), inverse, s);
  }
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtepi32_epi16(_mm512_cvttpd_epi32(s)));
  }
  JALI_INLINE static R load_small(const std::uint16_t* p) {
    return _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  JALI_INLINE static R permute(R x, R lanes) { return _mm512_permutexvar_epi64(lanes, x); }
  JALI_INLINE static void transpose(R* v) {
    R t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
      t[2 * i + 1] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
    }
    // A 4 x 4 transposition of 128-bit lanes.
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      const R a = _mm512_shuffle_i64x2(t[c], t[2 + c], 0x88);
      const R b = _mm512_shuffle_i64x2(t[4 + c], t[6 + c], 0x88);
      const R d = _mm512_shuffle_i64x2(t[c], t[2 + c], 0xdd);
      const R e = _mm512_shuffle_i64x2(t[4 + c], t[6 + c], 0xdd);
      v[c] = _mm512_shuffle_i64x2(a, b, 0x88);
      v[2 + c] = _mm512_shuffle_i64x2(d, e, 0x88);
      v[4 + c] = _mm512_shuffle_i64x2(a, b, 0xdd);
      v[6 + c] = _mm512_shuffle_i64x2(d, e, 0xdd);
    }
  }
};

/// w52 and w64 without IFMA: beta = 2^64, high words put together from 32-bit products.
struct Avx512W64 : Avx512Lanes64 {
  static constexpr const char* kIsa = "avx512";
  static constexpr int kBetaBits = 64;
  static constexpr int kLazy = 4;
  static constexpr int kGroups = 2;
  static constexpr int kLeafGroups = 2;

  JALI_INLINE static R odd(R x) { return _mm512_srli_epi64(x, 32); }
  /// floor(x y / 2^64) or up to 2 less: the product of the low halves and the carries are dropped.
  JALI_INLINE static R high_lazy(R x, R y) {
    const R x1 = odd(x), y1 = odd(y);
    return add(add(_mm512_mul_epu32(x1, y1), odd(_mm512_mul_epu32(x1, y))),
               odd(_mm512_mul_epu32(x, y1)));
  }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, high_lazy(x, quotient), q);
  }
  JALI_INLINE static R mul_high(R x, R quotient) { return high_lazy(x, quotient); }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) {
    return sub(_mm512_mullo_epi64(x, w), _mm512_mullo_epi64(h, q));
  }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) {
    return sub(x, _mm512_mullo_epi64(high_lazy(x, quotient), q));
  }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    const R a1 = odd(a), b1 = odd(b);
    const R mid = add(_mm512_mul_epu32(a1, b), odd(_mm512_mul_epu32(a, b)));
    const R mid2 =
        add(_mm512_mul_epu32(a, b1), _mm512_and_si512(mid, _mm512_set1_epi64(0xffffffff)));
    const R hi = add(add(_mm512_mul_epu32(a1, b1), odd(mid)), odd(mid2));
    const R lo = _mm512_mullo_epi64(a, b);
    acc.lo = add(acc.lo, lo);
    acc.hi = add(acc.hi, hi);
    acc.hi = _mm512_mask_sub_epi64(acc.hi, _mm512_cmplt_epu64_mask(acc.lo, lo), acc.hi,
                                   _mm512_set1_epi64(-1));
  }
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) { acc_mul(acc, a, b); }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    sign = _mm512_loadu_si512(p);
    return {_mm512_abs_epi64(sign), _mm512_setzero_si512()};
  }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) { hi = acc.hi, lo = acc.lo; }
};

#if defined(__AVX512IFMA__)
/// w52 with IFMA: beta = 2^52, factors below 2^52.
struct IfmaW52 : Avx512Lanes64 {
  static constexpr const char* kIsa = "ifma";
  static constexpr int kBetaBits = 52;
  static constexpr int kLazy = 2;
  static constexpr int kGroups = 2;
  static constexpr int kLeafGroups = 2;

  JALI_INLINE static R zero() { return _mm512_setzero_si512(); }
  JALI_INLINE static R mask() { return _mm512_set1_epi64((1ll << 52) - 1); }
  JALI_INLINE static R low(R acc, R a, R b) { return _mm512_madd52lo_epu64(acc, a, b); }
  JALI_INLINE static R high(R acc, R a, R b) { return _mm512_madd52hi_epu64(acc, a, b); }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, mul_high(x, quotient), q);
  }
  JALI_INLINE static R mul_high(R x, R quotient) { return high(zero(), x, quotient); }
  /// x w - h q = x w + h (2^52 - q) modulo 2^52. (One 64-bit multiplication for each product would
  /// do without the mask, and costs the same on Zen 5, but three times as much on Intel's cores.)
  JALI_INLINE static R mul_low(R x, R w, R h, R q) {
    return _mm512_and_si512(low(low(zero(), x, w), h, sub(zero(), q)), mask());
  }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) {
    return _mm512_and_si512(low(x, high(zero(), x, quotient), sub(zero(), q)), mask());
  }
  /// Sums of 15 low words stay below 2^56, of 15 high words of products < 2^100 below 2^52.
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    acc.lo = low(acc.lo, a, b);
    acc.hi = high(acc.hi, a, b);
  }
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) { acc_mul(acc, a, b); }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    sign = _mm512_loadu_si512(p);
    return {_mm512_abs_epi64(sign), zero()};
  }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) {
    hi = add(acc.hi, _mm512_srli_epi64(acc.lo, 52));
    lo = _mm512_and_si512(acc.lo, mask());
  }
};
#endif  // IFMA

}  // namespace jali::backend::cpu
#endif  // AVX-512
