// Vectors of doubles and of 64-bit words for the kernels of TFHE, over the compiler's own vectors;
// an instruction set adds fused multiply-adds, transpositions and conversions. Each instruction set
// compiles them anew, hence the anonymous namespace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/inline.h"

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace jali::backend::cpu {
namespace {

template <int lanes>
struct Wide {
  using D [[gnu::vector_size(8 * lanes)]] = double;
  using U [[gnu::vector_size(8 * lanes)]] = std::uint64_t;
  using I [[gnu::vector_size(8 * lanes)]] = std::int64_t;
};

/// What every instruction set has. Numbers are at multiples of 8 bytes.
template <int lanes>
struct PlainVec {
  static constexpr int kLanes = lanes;
  using D = typename Wide<lanes>::D;
  using U = typename Wide<lanes>::U;
  using I = typename Wide<lanes>::I;

  JALI_INLINE static D load(const double* p) {
    D x;
    __builtin_memcpy(&x, p, sizeof(x));
    return x;
  }
  JALI_INLINE static void store(double* p, D x) { __builtin_memcpy(p, &x, sizeof(x)); }
  JALI_INLINE static U load(const std::uint64_t* p) {
    U x;
    __builtin_memcpy(&x, p, sizeof(x));
    return x;
  }
  JALI_INLINE static void store(std::uint64_t* p, U x) { __builtin_memcpy(p, &x, sizeof(x)); }
  JALI_INLINE static D set1(double x) { return x - D{}; }
  JALI_INLINE static U set1(std::uint64_t x) { return x - U{}; }
  JALI_INLINE static D as_double(U x) { return reinterpret_cast<D>(x); }
  JALI_INLINE static U as_word(D x) { return reinterpret_cast<U>(x); }
  /// x, kept in a register. If a value from memory has two uses, GCC otherwise reads it twice, and
  /// loads are scarcer than registers here.
  JALI_INLINE static D held(D x) { return x; }
  /// The integers of words below 2^52.
  JALI_INLINE static D from_small(U x) {
    return as_double(x | set1(std::uint64_t{0x4330000000000000})) - set1(0x1p52);
  }
  /// The nearest integer of |x| < 2^51, halves to the even one.
  JALI_INLINE static D round(D x) { return (x + set1(0x1.8p52)) - set1(0x1.8p52); }
  /// round(2^64 r) modulo 2^64 of r in [-1/2, 1/2], to a multiple of 2^13: 3 + r lies in [2, 4),
  /// where doubles are multiples of 2^-51, and the bits of 3 leave at the top.
  JALI_INLINE static U word_of_fraction(D r) { return as_word(r + set1(3.0)) << 13; }
  /// 2^64 x modulo 2^64 of a real number on the torus, |x| < 2^51.
  JALI_INLINE static U torus_word(D x) { return word_of_fraction(x - round(x)); }
  /// Whether words are to be negated, as the vectors of an instruction set want to know it.
  using Sign = std::uint64_t;
  JALI_INLINE static Sign sign(bool negative) { return negative ? ~std::uint64_t{0} : 0; }
  /// c + x - a, or c - x - a if the sign is set.
  JALI_INLINE static U difference(U x, Sign negative, U a, U c) {
    return (x ^ set1(negative)) + (c - set1(negative) - a);
  }
  /// The signed integers of words, rounded to doubles: hi 2^32 + lo, both exact.
  JALI_INLINE static D from_word(U x) {
    const U hi = (x >> 32) ^ set1(std::uint64_t{0x80000000});
    const D high = (from_small(hi) - set1(0x1p31)) * set1(0x1p32);
    return high + from_small(x & set1(std::uint64_t{0xffffffff}));
  }
};

template <int lanes>
struct PortableVec;

/// Two lanes, which every compiler knows how to spread over what the machine has.
template <>
struct PortableVec<2> : PlainVec<2> {
  static constexpr const char* kIsa = "portable";
  static constexpr int kLogRadix = 2;
  JALI_INLINE static D fma(D a, D b, D c) { return a * b + c; }
  JALI_INLINE static D fms(D a, D b, D c) { return a * b - c; }
  JALI_INLINE static D fnma(D a, D b, D c) { return c - a * b; }
  JALI_INLINE static void transpose(D (&v)[2]) {
    const D a = v[0], b = v[1];
    v[0] = D{a[0], b[0]};
    v[1] = D{a[1], b[1]};
  }
};

#if defined(__AVX2__) && !defined(__AVX512F__)
struct Avx2Vec : PlainVec<4> {
  static constexpr const char* kIsa = "avx2";
  static constexpr int kLogRadix = 3;
  JALI_INLINE static D held(D x) {
    asm("" : "+x"(x));
    return x;
  }
  JALI_INLINE static D fma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
  JALI_INLINE static D fms(D a, D b, D c) { return _mm256_fmsub_pd(a, b, c); }
  JALI_INLINE static D fnma(D a, D b, D c) { return _mm256_fnmadd_pd(a, b, c); }
  JALI_INLINE static D round(D x) { return _mm256_round_pd(x, 8); }
  JALI_INLINE static U torus_word(D x) { return word_of_fraction(x - round(x)); }
  JALI_INLINE static void transpose(D (&v)[4]) {
    const D a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    const D c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
  }
};
#endif

#if defined(__AVX512F__)
struct Avx512Vec : PlainVec<8> {
  static constexpr const char* kIsa = "avx512";
  static constexpr int kLogRadix = 3;
  JALI_INLINE static D held(D x) {
    asm("" : "+v"(x));
    return x;
  }
  JALI_INLINE static D fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
  JALI_INLINE static D fms(D a, D b, D c) { return _mm512_fmsub_pd(a, b, c); }
  JALI_INLINE static D fnma(D a, D b, D c) { return _mm512_fnmadd_pd(a, b, c); }
  using Sign = __mmask8;
  JALI_INLINE static Sign sign(bool negative) { return negative ? 0xff : 0; }
  JALI_INLINE static U difference(U x, Sign negative, U a, U c) {
    asm("" : "+v"(x));  // as held does
    const auto rest = reinterpret_cast<__m512i>(c - a), turned = reinterpret_cast<__m512i>(x);
    return reinterpret_cast<U>(
        _mm512_mask_sub_epi64(_mm512_add_epi64(rest, turned), negative, rest, turned));
  }
  JALI_INLINE static D round(D x) { return _mm512_roundscale_pd(x, 8); }
  JALI_INLINE static U torus_word(D x) { return word_of_fraction(x - round(x)); }
  JALI_INLINE static void transpose(D (&v)[8]) {
    D t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = _mm512_unpacklo_pd(v[2 * i], v[2 * i + 1]);
      t[2 * i + 1] = _mm512_unpackhi_pd(v[2 * i], v[2 * i + 1]);
    }
    // A 4 x 4 transposition of 128-bit lanes.
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      const D a = _mm512_shuffle_f64x2(t[c], t[2 + c], 0x88);
      const D b = _mm512_shuffle_f64x2(t[4 + c], t[6 + c], 0x88);
      const D d = _mm512_shuffle_f64x2(t[c], t[2 + c], 0xdd);
      const D e = _mm512_shuffle_f64x2(t[4 + c], t[6 + c], 0xdd);
      v[c] = _mm512_shuffle_f64x2(a, b, 0x88);
      v[2 + c] = _mm512_shuffle_f64x2(d, e, 0x88);
      v[4 + c] = _mm512_shuffle_f64x2(a, b, 0xdd);
      v[6 + c] = _mm512_shuffle_f64x2(d, e, 0xdd);
    }
  }
};
#endif

}  // namespace
}  // namespace jali::backend::cpu
