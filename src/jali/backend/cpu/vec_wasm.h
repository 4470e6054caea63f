// The vector class for WebAssembly's vectors of 128 bits: see vec_scalar.h for what each function
// means. Words of 64 bits have none: a vector would hold two of them, and each product of theirs is
// four of 32 bits.
#pragma once

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>

#include <cstdint>

#include "jali/backend/cpu/inline.h"

namespace jali::backend::cpu {

/// w32: four lanes, beta = 2^32.
struct WasmW32 {
  using T = std::uint32_t;
  using R = v128_t;
  struct F {
    double lane[4];
  };
  static constexpr const char* kIsa = "simd128";
  static constexpr int kLanes = 4;
  static constexpr int kBetaBits = 32;
  static constexpr int kLazy = 2;
  static constexpr int kLogRadix = 2;
  static constexpr int kGroups = 1;
  static constexpr int kLeafGroups = 1;
  struct Acc {
    R lo, hi;  // lanes 0 and 1, 2 and 3
  };

  JALI_INLINE static R load(const T* p) { return wasm_v128_load(p); }
  JALI_INLINE static void store(T* p, R x) { wasm_v128_store(p, x); }
  JALI_INLINE static R set1(std::uint64_t x) {
    return wasm_u32x4_splat(static_cast<std::uint32_t>(x));
  }
  JALI_INLINE static R add(R a, R b) { return wasm_i32x4_add(a, b); }
  JALI_INLINE static R sub(R a, R b) { return wasm_i32x4_sub(a, b); }
  JALI_INLINE static R reduce_once(R x, R m) { return wasm_u32x4_min(x, sub(x, m)); }
  JALI_INLINE static R add_if_negative(R d, R q) { return wasm_u32x4_min(d, add(d, q)); }
  /// The low and high halves of four words of 64 bits.
  JALI_INLINE static R lows(R lo, R hi) { return wasm_i32x4_shuffle(lo, hi, 0, 2, 4, 6); }
  JALI_INLINE static R highs(R lo, R hi) { return wasm_i32x4_shuffle(lo, hi, 1, 3, 5, 7); }
  JALI_INLINE static R mul_high(R x, R quotient) {
    return highs(wasm_u64x2_extmul_low_u32x4(x, quotient),
                 wasm_u64x2_extmul_high_u32x4(x, quotient));
  }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) {
    return sub(wasm_i32x4_mul(x, w), wasm_i32x4_mul(h, q));
  }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, mul_high(x, quotient), q);
  }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) {
    return sub(x, wasm_i32x4_mul(mul_high(x, quotient), q));
  }
  JALI_INLINE static Acc acc_set(R r) {
    return {wasm_u64x2_extend_low_u32x4(r), wasm_u64x2_extend_high_u32x4(r)};
  }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    acc.lo = wasm_i64x2_add(acc.lo, wasm_u64x2_extmul_low_u32x4(a, b));
    acc.hi = wasm_i64x2_add(acc.hi, wasm_u64x2_extmul_high_u32x4(a, b));
  }
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) { acc_mul(acc, a, b); }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) {
    hi = highs(acc.lo, acc.hi);
    lo = lows(acc.lo, acc.hi);
  }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    const R lo = wasm_v128_load(p), hi = wasm_v128_load(p + 2);
    sign = highs(lo, hi);
    return {wasm_i64x2_abs(lo), wasm_i64x2_abs(hi)};
  }
  JALI_INLINE static R select(R a, R b, R by) {
    return wasm_v128_bitselect(b, a, wasm_i32x4_shr(by, 31));
  }
  JALI_INLINE static F f_set1(double x) { return {{x, x, x, x}}; }
  /// There is no fused multiplication of vectors, and of numbers only the C library's.
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    T word[4];
    store(word, y);
    for (int k = 0; k < 4; ++k) {
      s.lane[k] = __builtin_fma(static_cast<double>(word[k]), inverse.lane[k], s.lane[k]);
    }
    return s;
  }
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) {
    for (int k = 0; k < 4; ++k) p[k] = static_cast<std::uint16_t>(s.lane[k]);
  }
  JALI_INLINE static R load_small(const std::uint16_t* p) { return wasm_u32x4_load16x4(p); }
  JALI_INLINE static R permute(R x, R lanes) {
    // Byte b of lane k is byte 4 lanes[k] + b.
    const R first = wasm_i32x4_mul(lanes, wasm_u32x4_splat(0x04040404));
    return wasm_i8x16_swizzle(x, add(first, wasm_u32x4_splat(0x03020100)));
  }
  JALI_INLINE static void transpose(R* v) {
    const R a = wasm_i32x4_shuffle(v[0], v[1], 0, 4, 1, 5);
    const R b = wasm_i32x4_shuffle(v[0], v[1], 2, 6, 3, 7);
    const R c = wasm_i32x4_shuffle(v[2], v[3], 0, 4, 1, 5);
    const R d = wasm_i32x4_shuffle(v[2], v[3], 2, 6, 3, 7);
    v[0] = wasm_i64x2_shuffle(a, c, 0, 2);
    v[1] = wasm_i64x2_shuffle(a, c, 1, 3);
    v[2] = wasm_i64x2_shuffle(b, d, 0, 2);
    v[3] = wasm_i64x2_shuffle(b, d, 1, 3);
  }
};

}  // namespace jali::backend::cpu
#endif  // SIMD128
