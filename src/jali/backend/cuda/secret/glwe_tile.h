// The formulas of encryption under a GLWE secret (glwe.cu), which a test also runs on the host.
//
// Coefficient t of A S, for binary S, is the sum over i < N of s_i a_(t-i), with a_(-j) = -a_(N-j).
// It is summed over tiles of `tile` coefficients t and of as many i. Of A a tile needs the window
// of 2 tile words from a_(t0 - i0 - tile) on, with t0 and i0 the first of its t and i. A thread has
// 8 neighbouring coefficients, and takes 8 neighbouring bits at a time, for which it holds 16
// words: each step of 64 masked sums reads 8 words.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/host_device.h"

namespace jali::backend::cuda::glwe {

constexpr unsigned kEach = 8;  // coefficients of a thread
constexpr unsigned kMostTile = 2048;

/// Where word e of a window lies in shared memory. A word of padding after every 8 lets the threads
/// of a warp, which read 8 words apart, read different banks.
JALI_HD constexpr unsigned place(unsigned e) { return e + e / kEach; }
JALI_HD constexpr unsigned window_words(unsigned tile) { return place(2 * tile); }

/// Word e of the window of the tiles `t` and `i` of the polynomial a of n words.
template <class Word>
JALI_HD Word window_word(const Word* a, unsigned n, unsigned tile, unsigned t, unsigned i,
                         unsigned e) {
  const int at = (static_cast<int>(t) - static_cast<int>(i) - 1) * static_cast<int>(tile) +
                 static_cast<int>(e);  // from -n to n - 1
  const Word word = a[static_cast<unsigned>(at) & (n - 1)];
  return at < 0 ? Word{0} - word : word;
}

/// 8 secret bits in one byte.
JALI_HD std::uint8_t packed(const std::uint8_t* bits) {
  unsigned byte = 0;
  for (unsigned e = 0; e < kEach; ++e) byte |= static_cast<unsigned>(bits[e]) << e;
  return static_cast<std::uint8_t>(byte);
}

/// sum[j] += what tile i gives to the coefficients 8 thread + j of tile t. window: of these tiles,
/// at place(); bits: of tile i, packed. No branch and no address depends on a bit.
template <class Word>
JALI_HD void add_tile(Word (&sum)[kEach], const Word* window, const std::uint8_t* bits,
                      unsigned tile, unsigned thread) {
  // Bits 8 g .. 8 g + 7 meet the words of groups `group` (high) and group - 1 (low).
  unsigned group = thread + tile / kEach;
  Word high[kEach], low[kEach];
  JALI_UNROLL_BY(8)
  for (unsigned e = 0; e < kEach; ++e) high[e] = window[place(group * kEach) + e];
  JALI_UNROLL_BY(2)
  for (unsigned g = 0; g < tile / kEach; ++g) {
    --group;
    JALI_UNROLL_BY(8)
    for (unsigned e = 0; e < kEach; ++e) low[e] = window[place(group * kEach) + e];
    const unsigned byte = bits[g];
    JALI_UNROLL_BY(8)
    for (unsigned e = 0; e < kEach; ++e) {
      const Word mask = Word{0} - static_cast<Word>(byte >> e & 1);
      JALI_UNROLL_BY(8)
      for (unsigned j = 0; j < kEach; ++j) {
        sum[j] += (j >= e ? high[j - e] : low[kEach + j - e]) & mask;
      }
    }
    JALI_UNROLL_BY(8)
    for (unsigned e = 0; e < kEach; ++e) high[e] = low[e];
  }
}

/// TUniform(bits) from a word u of the stream, of which the low bits + 2 count
/// (random/tuniform.cpp).
JALI_HD std::uint64_t tuniform(std::uint64_t u, int bits) {
  u &= ~std::uint64_t{0} >> (62 - bits);
  return (u >> 1) + (u & 1) - (std::uint64_t{1} << bits);
}

/// Which row of its key a ciphertext is.
struct GadgetRow {
  std::uint64_t bit;  // its number
  unsigned component;  // c of torus.h
  int shift;  // w - j g
};
JALI_HD GadgetRow gadget_row(std::uint64_t row, unsigned k, unsigned levels, int base_log,
                             int word_bits, bool ggsw) {
  const unsigned rows = (ggsw ? k + 1 : 1) * levels, within = static_cast<unsigned>(row % rows);
  return {row / rows, ggsw ? within / levels : k,
          word_bits - (static_cast<int>(within % levels) + 1) * base_log};
}

}  // namespace jali::backend::cuda::glwe
