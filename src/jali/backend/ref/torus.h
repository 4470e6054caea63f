// Words of the torus and their polynomials, by the definitions: W is std::uint32_t or
// std::uint64_t, and all arithmetic is modulo 2^w.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/torus.h"

namespace jali::backend::ref {

/// digits[j - 1] = d_j, j = 1 .. levels, as torus.h says.
template <class W>
void decompose(std::span<std::int32_t> digits, W x, const Gadget& gadget) {
  const int bits = static_cast<int>(sizeof(W) * CHAR_BIT);
  const int dropped = bits - gadget.levels * gadget.base_log;
  // The multiple, in units of 2^dropped. If half a unit carries out of the word, this is 0 instead
  // of 2^(w - dropped), which is the same modulo 2^w and has the same digits.
  W rest = dropped == 0 ? x : static_cast<W>(x + (W{1} << (dropped - 1))) >> dropped;
  const W base = W{1} << gadget.base_log, half = base / 2;
  for (int j = gadget.levels; j >= 1; --j) {
    const W remainder = rest % base;
    rest /= base;
    const bool negative = remainder > half || (remainder == half && rest % 2 == 1);
    digits[static_cast<std::size_t>(j - 1)] = static_cast<std::int32_t>(
        static_cast<std::int64_t>(remainder) - (negative ? static_cast<std::int64_t>(base) : 0));
    if (negative) ++rest;
  }
}

/// acc += a b modulo X^N + 1: every product of two coefficients.
template <class W>
void add_product(W* acc, std::span<const std::int32_t> a, const W* b) {
  const std::size_t N = a.size();
  for (std::size_t i = 0; i < N; ++i) {
    const W factor = static_cast<W>(a[i]);
    if (factor == 0) continue;
    for (std::size_t j = 0; j < N - i; ++j) acc[i + j] += factor * b[j];
    for (std::size_t j = N - i; j < N; ++j) acc[i + j - N] -= factor * b[j];  // X^N = -1
  }
}

/// out = X^e a modulo X^N + 1, e in [0, 2N). out is not a.
template <class W>
void times_power(W* out, const W* a, std::size_t e, std::size_t N) {
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t to = (i + e) % (2 * N);
    if (to < N) {
      out[to] = a[i];
    } else {
      out[to - N] = static_cast<W>(0 - a[i]);
    }
  }
}

}  // namespace jali::backend::ref
