// Rejection sampling: keeps the words of a stream that are residues.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/base/cpu_features.h"

namespace jali::random {

/// Writes those of x[0] & mask, ..., x[count - 1] & mask that are below bound to out, in order, and
/// returns how many they are. out has room for `count` residues, and is undefined after those that
/// were kept.
template <class Raw, class Out>
using KeepBelowFn = std::size_t(const Raw* x, std::size_t count, Raw mask, Raw bound, Out* out);

// Always inlined, because a copy that was compiled for one instruction set must not serve the
// others.
template <class Raw, class Out>
[[gnu::always_inline]] inline std::size_t keep_below_portable(const Raw* x, std::size_t count,
                                                              Raw mask, Raw bound, Out* out) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Raw word = x[i] & mask;
    out[kept] = static_cast<Out>(word);
    kept += word < bound;
  }
  return kept;
}

KeepBelowFn<std::uint32_t, std::uint32_t> keep_below_avx512;
KeepBelowFn<std::uint32_t, std::uint64_t> keep_below_avx512;
KeepBelowFn<std::uint64_t, std::uint64_t> keep_below_avx512;

/// The fastest of them that this machine can run. All give the same residues.
template <class Raw, class Out>
KeepBelowFn<Raw, Out>* keep_below_best() {
#if defined(__x86_64__)
  if (cpu_features().avx512) return keep_below_avx512;
#endif
  return keep_below_portable<Raw, Out>;
}

}  // namespace jali::random
