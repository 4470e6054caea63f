// Rejection: which words of a stream are residues.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/base/cpu_features.h"

namespace jali::random {

/// Those of x[i] & mask that are below bound, in order, to out, which has room for `count` of them (and is
/// undefined behind them). Returns how many.
template <class Raw, class Out>
using KeepBelowFn = std::size_t(const Raw* x, std::size_t count, Raw mask, Raw bound, Out* out);

// Inlined wherever it is called: a copy compiled for one instruction set must not serve the others.
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

/// The fastest that this machine runs. All give the same residues.
template <class Raw, class Out>
KeepBelowFn<Raw, Out>* keep_below_best() {
#if defined(__x86_64__)
  if (cpu_features().avx512) return keep_below_avx512;
#endif
  return keep_below_portable<Raw, Out>;
}

}  // namespace jali::random
