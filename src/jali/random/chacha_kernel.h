// The ChaCha20 block function on W blocks at once: lane b of every vector belongs to block b. It is
// compiled once for each instruction set, in files that include nothing else. Otherwise the
// compiler could emit an inline function of a shared header with instructions that another machine
// does not have.
#pragma once

#include "jali/random/chacha.h"
#include "jali/random/clear_registers.h"

namespace jali::random {
namespace {

template <int W>
struct Vector {
  using type [[gnu::vector_size(4 * W)]] = std::uint32_t;
};

template <int W>
inline void chacha20(std::uint32_t* state, std::size_t groups, std::uint8_t* out) {
  using V = typename Vector<W>::type;
  V lane{};
  for (int b = 0; b < W; ++b) lane[b] = static_cast<std::uint32_t>(b);

  for (std::size_t i = 0; i < groups * kGroupBlocks; i += W) {
    V start[16], x[16];
    for (int k = 0; k < 16; ++k) start[k] = x[k] = state[k] + (k == 12 ? lane : V{});

#define JALI_QUARTER(a, b, c, d)                                  \
  x[a] += x[b], x[d] ^= x[a], x[d] = (x[d] << 16) | (x[d] >> 16); \
  x[c] += x[d], x[b] ^= x[c], x[b] = (x[b] << 12) | (x[b] >> 20); \
  x[a] += x[b], x[d] ^= x[a], x[d] = (x[d] << 8) | (x[d] >> 24);  \
  x[c] += x[d], x[b] ^= x[c], x[b] = (x[b] << 7) | (x[b] >> 25)
    for (int round = 0; round < 10; ++round) {
      JALI_QUARTER(0, 4, 8, 12);
      JALI_QUARTER(1, 5, 9, 13);
      JALI_QUARTER(2, 6, 10, 14);
      JALI_QUARTER(3, 7, 11, 15);
      JALI_QUARTER(0, 5, 10, 15);
      JALI_QUARTER(1, 6, 11, 12);
      JALI_QUARTER(2, 7, 8, 13);
      JALI_QUARTER(3, 4, 9, 14);
    }
#undef JALI_QUARTER

    for (int k = 0; k < 16; ++k) x[k] += start[k];
    // Transposes: the words of block b are lane b of every vector.
    std::uint32_t block[16];
    for (int b = 0; b < W; ++b, out += 64) {
      for (int k = 0; k < 16; ++k) block[k] = x[k][b];
      __builtin_memcpy(out, block, 64);
    }
    state[12] += W;
  }
  clear_vector_registers();
}

}  // namespace
}  // namespace jali::random
