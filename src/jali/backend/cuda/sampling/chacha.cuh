// ChaCha20 (RFC 8439, section 2.3) as random/ has it: one thread makes one block.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace jali::backend::cuda {

struct ChachaKey {
  std::uint32_t word[8];
};
__device__ inline void quarter(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                               std::uint32_t& d) {
  a += b, d = __byte_perm(d ^ a, 0, 0x1032);
  c += d, b = __funnelshift_l(b ^ c, b ^ c, 12);
  a += b, d = __byte_perm(d ^ a, 0, 0x2103);
  c += d, b = __funnelshift_l(b ^ c, b ^ c, 7);
}

__device__ inline void chacha20(const ChachaKey& key, std::uint32_t counter, std::uint64_t nonce,
                                std::uint32_t (&x)[16]) {
  const std::uint32_t start[16] = {0x61707865,
                                   0x3320646e,
                                   0x79622d32,
                                   0x6b206574,
                                   key.word[0],
                                   key.word[1],
                                   key.word[2],
                                   key.word[3],
                                   key.word[4],
                                   key.word[5],
                                   key.word[6],
                                   key.word[7],
                                   counter,
                                   static_cast<std::uint32_t>(nonce),
                                   static_cast<std::uint32_t>(nonce >> 32),
                                   0};
#pragma unroll
  for (int k = 0; k < 16; ++k) x[k] = start[k];
#pragma unroll 1
  for (int round = 0; round < 10; ++round) {
    quarter(x[0], x[4], x[8], x[12]);
    quarter(x[1], x[5], x[9], x[13]);
    quarter(x[2], x[6], x[10], x[14]);
    quarter(x[3], x[7], x[11], x[15]);
    quarter(x[0], x[5], x[10], x[15]);
    quarter(x[1], x[6], x[11], x[12]);
    quarter(x[2], x[7], x[8], x[13]);
    quarter(x[3], x[4], x[9], x[14]);
  }
#pragma unroll
  for (int k = 0; k < 16; ++k) x[k] += start[k];
}

inline ChachaKey key_of(std::span<const std::uint8_t, 32> seed) {
  ChachaKey key;
  std::memcpy(key.word, seed.data(), sizeof(key.word));
  return key;
}

}  // namespace jali::backend::cuda
