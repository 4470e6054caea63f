// The sums of masked rotations. Compiled once for each instruction set, in files that include nothing else. Otherwise the
// compiler could emit an inline function of a shared header with instructions that another machine does not have.
#pragma once

#include "jali/lwe/secret/masked_sums.h"

namespace jali::lwe {
namespace {

/// A vector of `Bytes` bytes of words.
template <class Word, int Bytes>
struct Lanes {
  using type [[gnu::vector_size(Bytes)]] = Word;
};

/// 8 vectors of sums stay in registers while i runs.
template <int Bytes, class Word>
inline void masked_sums(Word* out, const Word* turned, const Word* masks, std::size_t n) {
  using V = typename Lanes<Word, Bytes>::type;
  constexpr std::size_t kLanes = Bytes / sizeof(Word);
  constexpr std::size_t kVectors = 8;
  static_assert(kVectors * kLanes <= 128, "N has at least 128 words");
  for (std::size_t t = 0; t < n; t += kVectors * kLanes) {
    V sum[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      __builtin_memcpy(&sum[v], out + t + v * kLanes, Bytes);
    }
    const Word* at = turned + n + t;
    for (std::size_t i = 0; i < n; ++i, --at) {
      const V mask = V{} + masks[i];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        V x;
        __builtin_memcpy(&x, at + v * kLanes, Bytes);
        sum[v] += x & mask;
      }
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      __builtin_memcpy(out + t + v * kLanes, &sum[v], Bytes);
    }
  }
}

}  // namespace
}  // namespace jali::lwe
