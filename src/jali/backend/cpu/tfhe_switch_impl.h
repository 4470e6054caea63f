// The products of key switching and of linear combinations over words, which the compiler spreads
// over the lanes of the instruction set at hand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/tfhe_kernels.h"

namespace jali::backend::cpu {
namespace {

/// bytes: of a vector; together: ciphertexts whose sums are in registers at a time, for `vectors`
/// vectors of columns.
template <std::size_t bytes, int together, int vectors>
struct SwitchRows {
  using W [[gnu::vector_size(bytes)]] = std::uint32_t;
  static constexpr std::size_t kLanes = bytes / 4;
  static constexpr std::size_t kColumns = kLanes * vectors;
  static_assert(kSwitchColumns % kColumns == 0);

  template <int count>
  JALI_INLINE static void columns(const SwitchTile& tile, std::size_t first, std::size_t column) {
    W sum[count][vectors];
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[i][v] = W{};
    }
    const std::uint32_t* key = tile.key + column;
    const std::int32_t* const digits = tile.digits + first * tile.digit_stride;
    for (std::size_t r = 0; r < tile.rows; ++r, key += kSwitchColumns) {
      __builtin_prefetch(key + 16 * kSwitchColumns);
      W row[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        __builtin_memcpy(&row[v], key + static_cast<std::size_t>(v) * kLanes, bytes);
      }
#pragma GCC unroll 4
      for (int i = 0; i < count; ++i) {
        const auto digit =
            static_cast<std::uint32_t>(digits[static_cast<std::size_t>(i) * tile.digit_stride + r]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sum[i][v] += row[v] * digit;
      }
    }
    for (int i = 0; i < count; ++i) {
      for (int v = 0; v < vectors; ++v) {
        std::uint32_t* const at = tile.out +
                                  (first + static_cast<std::size_t>(i)) * tile.out_stride + column +
                                  static_cast<std::size_t>(v) * kLanes;
        W old;
        __builtin_memcpy(&old, at, bytes);
        old += sum[i][v];
        __builtin_memcpy(at, &old, bytes);
      }
    }
  }
  static void run(const SwitchTile& tile) {
    for (std::size_t column = 0; column < kSwitchColumns; column += kColumns) {
      std::size_t i = 0;
      for (; i + together <= tile.count; i += together) columns<together>(tile, i, column);
      for (; i < tile.count; ++i) columns<1>(tile, i, column);
    }
  }

  static void digits(std::int32_t* out, const std::uint64_t* words, std::size_t count,
                     const DigitRule& rule) {
    const int g = rule.base_log, levels = rule.levels;
    const std::uint64_t half = std::uint64_t{1} << (g - 1), mask = 2 * half - 1;
    for (std::size_t i = 0; i < count; ++i, out += levels) {
      std::uint64_t u = (words[i] + rule.half_unit) >> rule.shift;
      for (int j = levels - 1; j >= 0; --j) {
        const std::uint64_t r = u & mask;
        u >>= g;
        const std::uint64_t carry = (r + half - 1 + (j > 0 ? u & 1 : 0)) >> g;
        out[j] = static_cast<std::int32_t>(static_cast<std::int64_t>(r - (carry << g)));
        u += carry;
      }
    }
  }

  static void add_multiple64(std::uint64_t* out, const std::uint64_t* in, std::uint64_t weight,
                             std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] += weight * in[i];
  }
  static void add_multiple32(std::uint32_t* out, const std::uint32_t* in, std::uint32_t weight,
                             std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] += weight * in[i];
  }
};

/// The table of kernels of a vector class and of a shape of the key switch.
template <class V, class S, class R>
TfheKernels tfhe_kernels() {
  TfheKernels k;
  k.isa = V::kIsa;
  k.lanes = V::kLanes;
  k.quad = static_cast<int>(R::kQuad);
  k.log_radix = V::kLogRadix;
  k.step = R::step;
  k.transform_words = R::F::transform_words;
  k.switch_tile = S::run;
  k.digits = S::digits;
  k.add_multiple64 = S::add_multiple64;
  k.add_multiple32 = S::add_multiple32;
  return k;
}

}  // namespace
}  // namespace jali::backend::cpu
