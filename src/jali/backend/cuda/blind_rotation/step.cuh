// What the kernels of blind rotation share: complex products, the modulus switch, and how digits
// are cut from words.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace jali::backend::cuda {

namespace {

constexpr int kMaxUnits = 15;

/// The word of a torus of 32 bits that is nearest to v, modulo 2^32. |v| < 2^63.
__device__ __forceinline__ std::uint32_t nearest(double v) {
  return static_cast<std::uint32_t>(__double2ll_rn(v));
}
__device__ __forceinline__ void add_product(double2& sum, const double2& a, const double2& b) {
  sum.x = fma(a.x, b.x, fma(-a.y, b.y, sum.x));
  sum.y = fma(a.x, b.y, fma(a.y, b.x, sum.y));
}
__device__ __forceinline__ double2 product(const double2& a, const double2& b) {
  return make_double2(fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));
}

/// The modulus switch of words to 2N (backend/tfhe_ops.h, switched): bits: those that are rounded
/// off, log_many included.
struct Switch {
  int bits, log_many;
  unsigned turn;  // 2N - 1
  __device__ __forceinline__ unsigned operator()(std::uint32_t a) const {
    return ((a + (1u << (bits - 1))) >> bits << log_many) & turn;
  }
  /// What it rounds off, signed.
  __device__ __forceinline__ int error(std::uint32_t a) const {
    const std::uint32_t half = 1u << (bits - 1), low = (half << 1) - 1;
    return static_cast<int>((a + half) & low) - static_cast<int>(half);
  }
};

/// Digits of words of 32 bits. With half a unit of the last level and half a base of every level
/// added, a digit is a field of bits less half a base.
///
/// Words of 32 bits have ties: a share of 2^(levels base_log - 32) lies half a unit above a digit.
/// If all of them went up, words would move by 2^-33 on average, and the phase by up to k N / 2
/// times that, in every step whose key is 1: at N = 8192 and 28 bits, 12 times the variance of the
/// rotation. So ties of every other run of coefficients (every other number i of a thread) go down.
struct Cut {
  std::uint32_t added, mask;
  /// What to add to the words of a thread's number i.
  __device__ __forceinline__ std::uint32_t to(int i) const {
    return added - static_cast<std::uint32_t>(i & 1);
  }
  double bias;  // 2^52 + half a base
  /// Of one level: `shift` = 32 - (level + 1) base_log. word: with `added`.
  __device__ __forceinline__ double digit(std::uint32_t word, int shift) const {
    return __hiloint2double(0x43300000, static_cast<int>(word >> shift & mask)) - bias;
  }
};
__device__ __forceinline__ Cut make_cut(int levels, int base_log) {
  std::uint32_t added = 1u << (32 - levels * base_log - 1);
  for (int j = 1; j <= levels; ++j) added += 1u << (32 - j * base_log + base_log - 1);
  return {added, (1u << base_log) - 1,
          4503599627370496.0 + static_cast<double>(1u << (base_log - 1))};
}

/// The complex number a + i b of two words, times i^quarters.
__device__ __forceinline__ uint2 turned(uint2 v, unsigned quarters) {
  if (quarters & 1) v = make_uint2(0 - v.y, v.x);
  if (quarters & 2) v = make_uint2(0 - v.x, 0 - v.y);
  return v;
}

}  // namespace

}  // namespace jali::backend::cuda
