// Vector classes for AVX2 with FMA: see vec_scalar.h for what each function means.
#pragma once

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#include <cstdint>

#include "jali/backend/cpu/inline.h"

namespace jali::backend::cpu {

/// w32: eight lanes, beta = 2^32.
struct Avx2W32 {
  using T = std::uint32_t;
  using R = __m256i;
  struct F {
    __m256d lo, hi;  // lanes 0 to 3, 4 to 7
  };
  static constexpr const char* kIsa = "avx2";
  static constexpr int kLanes = 8;
  static constexpr int kBetaBits = 32;
  static constexpr int kLazy = 2;
  static constexpr int kLogRadix = 2;
  static constexpr int kGroups = 1;
  static constexpr int kLeafGroups = 1;
  struct Acc {
    R even, odd;
  };

  JALI_INLINE static R load(const T* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  JALI_INLINE static void store(T* p, R x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  JALI_INLINE static R set1(std::uint64_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  JALI_INLINE static R add(R a, R b) { return _mm256_add_epi32(a, b); }
  JALI_INLINE static R sub(R a, R b) { return _mm256_sub_epi32(a, b); }
  JALI_INLINE static R reduce_once(R x, R m) { return _mm256_min_epu32(x, sub(x, m)); }
  JALI_INLINE static R add_if_negative(R d, R q) { return _mm256_min_epu32(d, add(d, q)); }
  JALI_INLINE static R odd(R x) { return _mm256_srli_epi64(x, 32); }
  JALI_INLINE static R highs(R even, R odd_sums) {
    return _mm256_blend_epi32(odd(even), odd_sums, 0xaa);
  }
  JALI_INLINE static R high(R x, R y) {
    return highs(_mm256_mul_epu32(x, y), _mm256_mul_epu32(odd(x), odd(y)));
  }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, high(x, quotient), q);
  }
  JALI_INLINE static R mul_high(R x, R quotient) { return high(x, quotient); }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) {
    return sub(_mm256_mullo_epi32(x, w), _mm256_mullo_epi32(h, q));
  }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) {
    return sub(x, _mm256_mullo_epi32(high(x, quotient), q));
  }
  JALI_INLINE static Acc acc_set(R r) {
    return {_mm256_blend_epi32(r, _mm256_setzero_si256(), 0xaa), odd(r)};
  }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    acc.even = _mm256_add_epi64(acc.even, _mm256_mul_epu32(a, b));
    acc.odd = _mm256_add_epi64(acc.odd, _mm256_mul_epu32(odd(a), odd(b)));
  }
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) {
    acc.even = _mm256_add_epi64(acc.even, _mm256_mul_epu32(a, b));
    acc.odd = _mm256_add_epi64(acc.odd, _mm256_mul_epu32(odd(a), b));
  }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) {
    hi = highs(acc.even, acc.odd);
    lo = _mm256_blend_epi32(acc.even, _mm256_slli_epi64(acc.odd, 32), 0xaa);
  }
  JALI_INLINE static R magnitude(R x) {
    const R negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
    return _mm256_sub_epi64(_mm256_xor_si256(x, negative), negative);
  }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    const R a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const R b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 4));
    const R even = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(a, b), 0xd8);
    const R odd_ones = _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(a, b), 0xd8);
    sign = highs(even, odd_ones);
    return {magnitude(even), magnitude(odd_ones)};
  }
  JALI_INLINE static R select(R a, R b, R by) {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _mm256_castsi256_ps(by)));
  }
  JALI_INLINE static F f_set1(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
  /// Words are below 2^30, so that signed conversions serve.
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    const __m256d lo = _mm256_cvtepi32_pd(_mm256_castsi256_si128(y));
    const __m256d hi = _mm256_cvtepi32_pd(_mm256_extracti128_si256(y, 1));
    return {_mm256_fmadd_pd(lo, inverse.lo, s.lo), _mm256_fmadd_pd(hi, inverse.hi, s.hi)};
  }
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packus_epi32(_mm256_cvttpd_epi32(s.lo), _mm256_cvttpd_epi32(s.hi)));
  }
  JALI_INLINE static R load_small(const std::uint16_t* p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  JALI_INLINE static R permute(R x, R lanes) { return _mm256_permutevar8x32_epi32(x, lanes); }
  JALI_INLINE static void transpose(R* v) {
    R t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
      t[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      u[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
      u[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
      u[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
      u[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      v[c] = _mm256_permute2x128_si256(u[c], u[4 + c], 0x20);
      v[4 + c] = _mm256_permute2x128_si256(u[c], u[4 + c], 0x31);
    }
  }
};

/// w52 and w64: four lanes, beta = 2^64. Residues stay below 2^63, so that the sign bit tells a
/// negative difference.
struct Avx2W64 {
  using T = std::uint64_t;
  using R = __m256i;
  using F = __m256d;
  static constexpr const char* kIsa = "avx2";
  static constexpr int kLanes = 4;
  static constexpr int kBetaBits = 64;
  static constexpr int kLazy = 2;
  static constexpr int kLogRadix = 2;
  static constexpr int kGroups = 1;
  static constexpr int kLeafGroups = 1;
  struct Acc {
    R lo, hi;
  };

  JALI_INLINE static R load(const T* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  JALI_INLINE static void store(T* p, R x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  JALI_INLINE static R set1(std::uint64_t x) {
    return _mm256_set1_epi64x(static_cast<long long>(x));
  }
  JALI_INLINE static R add(R a, R b) { return _mm256_add_epi64(a, b); }
  JALI_INLINE static R sub(R a, R b) { return _mm256_sub_epi64(a, b); }
  /// b where the sign bit of `by` is set, else a.
  JALI_INLINE static R select(R a, R b, R by) {
    return _mm256_castpd_si256(
        _mm256_blendv_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b), _mm256_castsi256_pd(by)));
  }
  JALI_INLINE static R reduce_once(R x, R m) {
    const R d = sub(x, m);
    return select(d, x, d);
  }
  JALI_INLINE static R add_if_negative(R d, R q) { return select(d, add(d, q), d); }
  JALI_INLINE static R odd(R x) { return _mm256_srli_epi64(x, 32); }
  /// Low 64 bits of the product.
  JALI_INLINE static R low(R x, R y) {
    const R cross = _mm256_mullo_epi32(x, _mm256_shuffle_epi32(y, 0xb1));  // x0 y1, x1 y0
    const R sum = _mm256_add_epi32(cross, odd(cross));
    return add(_mm256_mul_epu32(x, y), _mm256_slli_epi64(sum, 32));
  }
  JALI_INLINE static R high(R x, R y) {
    const R x1 = odd(x), y1 = odd(y);
    const R mid = add(_mm256_mul_epu32(x1, y), odd(_mm256_mul_epu32(x, y)));
    const R mid2 =
        add(_mm256_mul_epu32(x, y1), _mm256_blend_epi32(mid, _mm256_setzero_si256(), 0xaa));
    return add(add(_mm256_mul_epu32(x1, y1), odd(mid)), odd(mid2));
  }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, high(x, quotient), q);
  }
  JALI_INLINE static R mul_high(R x, R quotient) { return high(x, quotient); }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) { return sub(low(x, w), low(h, q)); }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) { return sub(x, low(high(x, quotient), q)); }
  JALI_INLINE static Acc acc_set(R r) { return {r, _mm256_setzero_si256()}; }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    const R sign = set1(std::uint64_t{1} << 63);
    const R lo = low(a, b);
    acc.lo = add(acc.lo, lo);
    const R carry = _mm256_cmpgt_epi64(_mm256_xor_si256(lo, sign), _mm256_xor_si256(acc.lo, sign));
    acc.hi = sub(add(acc.hi, high(a, b)), carry);
  }
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) { acc_mul(acc, a, b); }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    sign = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const R negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), sign);
    return {sub(_mm256_xor_si256(sign, negative), negative), _mm256_setzero_si256()};
  }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) { hi = acc.hi, lo = acc.lo; }
  JALI_INLINE static F f_set1(double x) { return _mm256_set1_pd(x); }
  /// Conversion of y < 2^63: 2^84 + 2^32 y1 and 2^52 + y0 are exact as bits, their offsets leave
  /// exactly, and the one addition at the end rounds.
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    const R hi = _mm256_or_si256(odd(y), _mm256_castpd_si256(_mm256_set1_pd(0x1p84)));
    const R lo = _mm256_blend_epi32(y, _mm256_castpd_si256(_mm256_set1_pd(0x1p52)), 0xaa);
    const F high_part = _mm256_sub_pd(_mm256_castsi256_pd(hi), _mm256_set1_pd(0x1p84 + 0x1p52));
    const F value = _mm256_add_pd(high_part, _mm256_castsi256_pd(lo));
    return _mm256_fmadd_pd(value, inverse, s);
  }
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) {
    const __m128i floors = _mm256_cvttpd_epi32(s);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(floors, floors));
  }
  JALI_INLINE static R load_small(const std::uint16_t* p) {
    return _mm256_cvtepu16_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  JALI_INLINE static R permute(R x, R lanes) {
    const R first = add(lanes, lanes);  // of the two 32-bit halves
    const R halves = add(add(first, _mm256_slli_epi64(first, 32)), set1(std::uint64_t{1} << 32));
    return _mm256_permutevar8x32_epi32(x, halves);
  }
  JALI_INLINE static void transpose(R* v) {
    const R a = _mm256_unpacklo_epi64(v[0], v[1]), b = _mm256_unpackhi_epi64(v[0], v[1]);
    const R c = _mm256_unpacklo_epi64(v[2], v[3]), d = _mm256_unpackhi_epi64(v[2], v[3]);
    v[0] = _mm256_permute2x128_si256(a, c, 0x20);
    v[1] = _mm256_permute2x128_si256(b, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, c, 0x31);
    v[3] = _mm256_permute2x128_si256(b, d, 0x31);
  }
};

}  // namespace jali::backend::cpu
#endif  // AVX2
