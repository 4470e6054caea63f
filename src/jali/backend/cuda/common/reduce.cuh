// Integers of the machine modulo a prime.
#pragma once

#include "jali/backend/cuda/common/word.cuh"

namespace jali::backend::cuda {

/// x mod q, canonical, for any 64-bit x.
__device__ inline W32::R from_u64(std::uint64_t x, const W32::Prime& p) {
  return W32::total({x}, p);
}
__device__ inline W64::R from_u64(std::uint64_t x, const W64::Prime& p) {
  return W64::total({x, 0}, p);
}
__device__ inline W52::R from_u64(std::uint64_t x, const W52::Prime& p) {
  const double beta = W52::reduce(0x1p32, p);
  const double high = W52::reduce(static_cast<double>(x >> 32), p);
  W52::Sum s = W52::sum_of(W52::reduce(static_cast<double>(x & 0xffffffffu), p));
  W52::add(s, high, beta, p);
  return W52::total(s, p);
}

/// 2^e mod q.
template <class W>
__device__ typename W::R power_of_two(unsigned e, const typename W::Prime& p) {
  typename W::R result = from_u64(1, p), base = from_u64(2, p);
  for (; e != 0; e >>= 1) {
    if (e & 1) result = mul_mod<W>(result, base, p);
    base = mul_mod<W>(base, base, p);
  }
  return result;
}

/// A sum of products of 32-bit words, at most 2^32 of them.
struct Sum96 {
  std::uint32_t w[3] = {0, 0, 0};
  __device__ void add(std::uint32_t a, std::uint32_t b) {
    asm("mad.lo.cc.u32 %0, %3, %4, %0;\n"
        "madc.hi.cc.u32 %1, %3, %4, %1;\n"
        "addc.u32 %2, %2, 0;"
        : "+r"(w[0]), "+r"(w[1]), "+r"(w[2])
        : "r"(a), "r"(b));
  }
  __device__ void add_words(std::uint64_t x) {
    asm("add.cc.u32 %0, %0, %3;\n"
        "addc.cc.u32 %1, %1, %4;\n"
        "addc.u32 %2, %2, 0;"
        : "+r"(w[0]), "+r"(w[1]), "+r"(w[2])
        : "r"(static_cast<std::uint32_t>(x)), "r"(static_cast<std::uint32_t>(x >> 32)));
  }
  __device__ std::uint64_t low() const { return w[0] | static_cast<std::uint64_t>(w[1]) << 32; }
  __device__ std::uint64_t high() const { return w[1] | static_cast<std::uint64_t>(w[2]) << 32; }
};

/// a mod q, canonical; q < 2^32.
__device__ inline W32::R total(const Sum96& a, const W32::Prime& p) {
  const std::uint64_t high = W32::total_lazy({a.high()}, p);  // below 4q, so 2^32
  return from_u64(high << 32 | a.w[0], p);
}
__device__ inline W64::R total(const Sum96& a, const W64::Prime& p) {
  const auto q = static_cast<std::uint32_t>(p.q), beta = static_cast<std::uint32_t>(p.beta.w);
  const std::uint64_t above = static_cast<std::uint64_t>(a.w[2]) * beta;  // 2^64 a.w[2]
  std::uint64_t s = a.low() + above;
  if (s < above) s += beta;  // below 2^64: s was below `above`, that is below (2^32 - 1)^2
  s -= __umul64hi(s, p.one.companion) * q;  // [0, 2q)
  return least(s, s - q);
}

/// (a + 2^32 b) mod q, canonical.
__device__ inline W32::R total(const Sum96& a, const Sum96& b, const W32::Prime& p) {
  const std::uint64_t high = total(b, p);
  return W32::add_mod(from_u64(high << 32, p), total(a, p), p);
}
__device__ inline W64::R total(const Sum96& a, const Sum96& b, const W64::Prime& p) {
  const std::uint64_t low = a.low() + (static_cast<std::uint64_t>(b.w[0]) << 32);
  return W64::total({low, a.w[2] + b.high() + (low < a.low())}, p);
}
__device__ inline W52::R total(const Sum96& a, const Sum96& b, const W52::Prime& p) {
  const std::uint64_t low = a.low() + (static_cast<std::uint64_t>(b.w[0]) << 32);
  const std::uint64_t high = a.w[2] + b.high() + (low < a.low());
  const double beta = from_u64(std::uint64_t{1} << 32, p);
  W52::Sum s = W52::sum_of(from_u64(low, p));
  W52::add(s, from_u64(high, p), mul_mod<W52>(beta, beta, p), p);
  return W52::total(s, p);
}
__device__ inline W52::R total(const Sum96& a, const W52::Prime& p) { return total(a, Sum96{}, p); }

}  // namespace jali::backend::cuda
