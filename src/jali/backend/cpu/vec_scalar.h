// The vector class of one lane: plain C++ for any machine, and the model of what a vector class
// offers. The kernels are templates over it.
#pragma once

#include <cstdint>

#include "jali/arith/wide.h"
#include "jali/backend/cpu/inline.h"

namespace jali::backend::cpu {

/// w32, beta = 2^32.
struct ScalarW32 {
  using T = std::uint32_t;  // the stored word
  using R = std::uint32_t;  // a register of kLanes words
  using F = double;         // kLanes doubles
  static constexpr const char* kIsa = "portable";
  static constexpr int kLanes = 1;
  static constexpr int kBetaBits = 32;
  static constexpr int kLazy = 2;      // mul_lazy gives [0, kLazy q)
  static constexpr int kLogRadix = 2;  // levels of the NTT done in registers at a time
  static constexpr int kGroups = 1;    // independent groups of 2^kLogRadix registers in flight
  static constexpr int kLeafGroups = 1;  // the same for transposed blocks
  struct Acc {                         // a sum of up to 15 products of residues
    std::uint64_t v;
  };

  JALI_INLINE static R load(const T* p) { return *p; }
  JALI_INLINE static void store(T* p, R x) { *p = x; }
  JALI_INLINE static R set1(std::uint64_t x) { return static_cast<R>(x); }
  JALI_INLINE static R add(R a, R b) { return a + b; }
  JALI_INLINE static R sub(R a, R b) { return a - b; }
  /// x - m if that is not negative, else x; x < 2m.
  JALI_INLINE static R reduce_once(R x, R m) { return x >= m ? x - m : x; }
  /// A difference d in (-q, q), as an unsigned word, to [0, q).
  JALI_INLINE static R add_if_negative(R d, R q) { return d + q < q ? d + q : d; }
  /// The two steps of mul_lazy: the quotient h, exact or up to kLazy - 2 too small, and x w - h q.
  JALI_INLINE static R mul_high(R x, R quotient) {
    return static_cast<R>((static_cast<std::uint64_t>(x) * quotient) >> 32);
  }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) { return x * w - h * q; }
  /// x w mod q in [0, kLazy q), any x < beta.
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, mul_high(x, quotient), q);
  }
  /// The same for w = 1.
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) { return x - mul_high(x, quotient) * q; }
  JALI_INLINE static Acc acc_set(R r) { return {r}; }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    acc.v += static_cast<std::uint64_t>(a) * b;
  }
  /// The same for a b that is one value in all lanes.
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) { acc_mul(acc, a, b); }
  /// acc = hi beta + lo, both < beta.
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) {
    hi = static_cast<R>(acc.v >> 32);
    lo = static_cast<R>(acc.v);
  }
  /// kLanes integers: magnitudes as a sum to be split, and words whose sign bits are theirs.
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    sign = static_cast<R>(static_cast<std::uint64_t>(*p) >> 32);
    const auto bits = static_cast<std::uint64_t>(*p);
    return {*p < 0 ? 0 - bits : bits};
  }
  /// b where the sign bit of `by` is set, else a.
  JALI_INLINE static R select(R a, R b, R by) { return by >> 31 ? b : a; }
  JALI_INLINE static F f_set1(double x) { return x; }
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    return __builtin_fma(static_cast<double>(y), inverse, s);
  }
  /// Floors of values in [0, 2^15) as 16-bit numbers, and back.
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) { *p = static_cast<std::uint16_t>(s); }
  JALI_INLINE static R load_small(const std::uint16_t* p) { return *p; }
  JALI_INLINE static void transpose(R*) {}
  JALI_INLINE static R permute(R x, R) { return x; }
};

/// w52 and w64, beta = 2^64.
struct ScalarW64 {
  using T = std::uint64_t;
  using R = std::uint64_t;
  using F = double;
  static constexpr const char* kIsa = "portable";
  static constexpr int kLanes = 1;
  static constexpr int kBetaBits = 64;
  static constexpr int kLazy = 2;
  static constexpr int kLogRadix = 2;
  static constexpr int kGroups = 1;
  static constexpr int kLeafGroups = 1;
  struct Acc {
    arith::uint128 v;
  };

  JALI_INLINE static R load(const T* p) { return *p; }
  JALI_INLINE static void store(T* p, R x) { *p = x; }
  JALI_INLINE static R set1(std::uint64_t x) { return x; }
  JALI_INLINE static R add(R a, R b) { return a + b; }
  JALI_INLINE static R sub(R a, R b) { return a - b; }
  JALI_INLINE static R reduce_once(R x, R m) { return x >= m ? x - m : x; }
  JALI_INLINE static R add_if_negative(R d, R q) { return d + q < q ? d + q : d; }
  JALI_INLINE static R mul_high(R x, R quotient) {
    return static_cast<R>((static_cast<arith::uint128>(x) * quotient) >> 64);
  }
  JALI_INLINE static R mul_low(R x, R w, R h, R q) { return x * w - h * q; }
  JALI_INLINE static R mul_lazy(R x, R w, R quotient, R q) {
    return mul_low(x, w, mul_high(x, quotient), q);
  }
  JALI_INLINE static R mod_lazy(R x, R quotient, R q) { return x - mul_high(x, quotient) * q; }
  JALI_INLINE static Acc acc_set(R r) { return {r}; }
  JALI_INLINE static void acc_mul(Acc& acc, R a, R b) {
    acc.v += static_cast<arith::uint128>(a) * b;
  }
  JALI_INLINE static void acc_mul_broadcast(Acc& acc, R a, R b) { acc_mul(acc, a, b); }
  JALI_INLINE static void acc_split(const Acc& acc, R& hi, R& lo) {
    hi = static_cast<R>(acc.v >> 64);
    lo = static_cast<R>(acc.v);
  }
  JALI_INLINE static Acc load_int64(const std::int64_t* p, R& sign) {
    sign = static_cast<R>(static_cast<std::uint64_t>(*p) >> 0);
    const auto bits = static_cast<std::uint64_t>(*p);
    return {*p < 0 ? 0 - bits : bits};
  }
  JALI_INLINE static R select(R a, R b, R by) { return by >> 63 ? b : a; }
  JALI_INLINE static F f_set1(double x) { return x; }
  JALI_INLINE static F f_fma(R y, F inverse, F s) {
    return __builtin_fma(static_cast<double>(y), inverse, s);
  }
  JALI_INLINE static void store_floor(std::uint16_t* p, F s) { *p = static_cast<std::uint16_t>(s); }
  JALI_INLINE static R load_small(const std::uint16_t* p) { return *p; }
  JALI_INLINE static void transpose(R*) {}
  JALI_INLINE static R permute(R x, R) { return x; }
};

}  // namespace jali::backend::cpu
