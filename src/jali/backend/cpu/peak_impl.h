// Loops that measure what a core does at most, over vectors of `bytes` bytes. Compiled once per
// instruction set, hence the anonymous namespace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {
namespace {

template <class T, std::size_t bytes>
struct VectorOf {
  using type [[gnu::vector_size(bytes)]] = T;
};

template <std::size_t bytes>
struct Peak {
  using Doubles = typename VectorOf<double, bytes>::type;
  using Words = typename VectorOf<std::uint64_t, bytes>::type;
  /// As many pairs of complex vectors as registers hold beside w and the products.
  static constexpr std::size_t kPairs = bytes == 64 ? 6 : 2;

  static void complex_butterflies(double* values, std::size_t rounds) {
    Doubles x[kPairs][2], y[kPairs][2], w[2];
    auto* const at = reinterpret_cast<Doubles*>(values);
    w[0] = at[4 * kPairs];
    w[1] = at[4 * kPairs + 1];
    for (std::size_t k = 0; k < kPairs; ++k) {
      for (int i = 0; i < 2; ++i) x[k][i] = at[4 * k + i], y[k][i] = at[4 * k + 2 + i];
    }
    for (std::size_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 6
      for (std::size_t k = 0; k < kPairs; ++k) {
        const Doubles re = y[k][0] * w[0] - y[k][1] * w[1], im = y[k][0] * w[1] + y[k][1] * w[0];
        y[k][0] = x[k][0] - re, y[k][1] = x[k][1] - im;
        x[k][0] = x[k][0] + re, x[k][1] = x[k][1] + im;
      }
    }
    for (std::size_t k = 0; k < kPairs; ++k) {
      for (int i = 0; i < 2; ++i) at[4 * k + i] = x[k][i], at[4 * k + 2 + i] = y[k][i];
    }
  }

  /// In a few streams, as an operation reads its operands: more than one is fetched ahead.
  static std::uint64_t read(const void* block, std::size_t count) {
    constexpr std::size_t kStreams = 4, kLine = 64 / bytes;
    const std::size_t vectors = count / bytes / kStreams;
    const auto* at = static_cast<const Words*>(block);
    Words sum[kStreams * kLine] = {};
    for (std::size_t i = 0; i < vectors; i += kLine) {
#pragma GCC unroll 4
      for (std::size_t s = 0; s < kStreams; ++s) {
#pragma GCC unroll 4
        for (std::size_t k = 0; k < kLine; ++k) sum[s * kLine + k] |= at[s * vectors + i + k];
      }
    }
    std::uint64_t out = 0;
    for (const Words& s : sum) {
      for (std::size_t l = 0; l < bytes / 8; ++l) out |= s[l];
    }
    return out;
  }

  /// The kernels with these loops among them.
  static RowKernels in(RowKernels kernels) {
    kernels.complex_butterflies = complex_butterflies;
    kernels.complex_pairs = kPairs * bytes / sizeof(double);
    kernels.complex_doubles = (4 * kPairs + 2) * bytes / sizeof(double);
    kernels.read = read;
    return kernels;
  }
};

}  // namespace
}  // namespace jali::backend::cpu
