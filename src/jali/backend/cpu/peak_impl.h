// Loops that measure what a core does at most. Compiled once per instruction set, hence the
// anonymous namespace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/row_base.h"

namespace jali::backend::cpu {

/// Of the transform, over a vector class V.
template <class V>
struct Butterflies : RowBase<V> {
  using typename RowBase<V>::R;
  using typename RowBase<V>::Prime;
  using RowBase<V>::W;
  using RowBase<V>::reduce_once;
  using RowBase<V>::row;

  /// Enough independent butterflies to hide the latency of one, few enough for the registers there
  /// are.
  static constexpr std::size_t kPairs = sizeof(R) == 64 ? 12 : 6;
  /// x, y in [0, 2Lq): x reduced to [0, Lq), then x + w y and x - w y + Lq, as in the transform.
  static void run(void* values, std::size_t rounds, const PrimeRow& prime) {
    const Prime p(prime);
    R x[kPairs], y[kPairs];
#pragma GCC unroll 12
    for (std::size_t k = 0; k < kPairs; ++k) {
      x[k] = V::load(row(values) + 2 * k * W);
      y[k] = V::load(row(values) + (2 * k + 1) * W);
    }
    for (std::size_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
      for (std::size_t k = 0; k < kPairs; ++k) {
        x[k] = reduce_once(x[k], p.lq);
        const R t = V::mul_lazy(y[k], p.beta, p.beta_quotient, p.q);
        y[k] = V::sub(V::add(x[k], p.lq), t);
        x[k] = V::add(x[k], t);
      }
    }
#pragma GCC unroll 12
    for (std::size_t k = 0; k < kPairs; ++k) {
      V::store(row(values) + 2 * k * W, x[k]);
      V::store(row(values) + (2 * k + 1) * W, y[k]);
    }
  }
};

namespace {

template <class T, std::size_t bytes>
struct VectorOf {
  using type [[gnu::vector_size(bytes)]] = T;
};

/// Over vectors of `bytes` bytes.
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
