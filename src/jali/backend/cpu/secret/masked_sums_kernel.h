// The sums of masked rotations. Compiled once for each instruction set, in files that include
// nothing else. Otherwise the compiler could emit an inline function of a shared header with
// instructions that another machine does not have.
#pragma once

#include "jali/backend/cpu/secret/masked_sums.h"

namespace jali::backend::cpu {
namespace {

/// A vector of `Bytes` bytes of words.
template <int Bytes>
struct Lanes {
  using type [[gnu::vector_size(Bytes)]] = std::uint64_t;
};

/// 8 vectors of sums stay in registers while i runs.
template <int Bytes>
inline void masked_sums(std::uint64_t* out, const std::uint64_t* turned, const std::uint64_t* masks,
                        std::size_t n) {
  using V = typename Lanes<Bytes>::type;
  constexpr std::size_t kLanes = Bytes / sizeof(std::uint64_t);
  constexpr std::size_t kVectors = 8;
  for (std::size_t t = 0; t < n; t += kVectors * kLanes) {
    V sum[kVectors];
    __builtin_memcpy(sum, out + t, sizeof(sum));
    const std::uint64_t* at = turned + n + t;
    for (std::size_t i = 0; i < n; ++i, --at) {
      const V mask = V{} + masks[i];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        V x;
        __builtin_memcpy(&x, at + v * kLanes, Bytes);
        sum[v] += x & mask;
      }
    }
    __builtin_memcpy(out + t, sum, sizeof(sum));
  }
}

}  // namespace
}  // namespace jali::backend::cpu
