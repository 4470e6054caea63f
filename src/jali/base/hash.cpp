#include "jali/base/hash.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "jali/base/cpu_features.h"

namespace jali {

namespace {

using State = std::array<std::uint32_t, 8>;

// FIPS 180-4, 4.2.2: first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
alignas(16) constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t load_be32(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

void compress_portable(State& state, const std::uint8_t* data, std::size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) {
    std::uint32_t w[64];
    for (int t = 0; t < 16; ++t) w[t] = load_be32(data + 4 * t);
    for (int t = 16; t < 64; ++t) {
      const std::uint32_t x = w[t - 15], y = w[t - 2];
      const std::uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
      const std::uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int t = 0; t < 64; ++t) {
      const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
      const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const State next{a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += next[i];
  }
}

#if defined(__x86_64__)

// The SHA extensions keep the state as (A,B,E,F) and (C,D,G,H), highest lane first, and do two
// rounds an instruction.
__attribute__((target("sha,sse4.1"))) void compress_shani(State& state, const std::uint8_t* data,
                                                          std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto lane = [](std::uint32_t x) { return static_cast<int>(x); };
  __m128i abef = _mm_set_epi32(lane(state[0]), lane(state[1]), lane(state[4]), lane(state[5]));
  __m128i cdgh = _mm_set_epi32(lane(state[2]), lane(state[3]), lane(state[6]), lane(state[7]));
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef0 = abef, cdgh0 = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] =
          _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i), big_endian);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m128i round = _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + i);
      const __m128i wk = _mm_add_epi32(w[i % 4], round);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
      if (i < 12) {
        const __m128i w1 = w[(i + 1) % 4], w2 = w[(i + 2) % 4], w3 = w[(i + 3) % 4];
        const __m128i s0 = _mm_sha256msg1_epu32(w[i % 4], w1);
        w[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(s0, _mm_alignr_epi8(w3, w2, 4)), w3);
      }
    }
    abef = _mm_add_epi32(abef, abef0);
    cdgh = _mm_add_epi32(cdgh, cdgh0);
  }
  alignas(16) std::uint32_t hi[4], lo[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(hi), abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(lo), cdgh);
  state = {hi[3], hi[2], lo[3], lo[2], hi[1], hi[0], lo[1], lo[0]};
}

#endif

void compress(State& state, const std::uint8_t* data, std::size_t blocks) {
#if defined(__x86_64__)
  if (cpu_features().sha && cpu_features().sse41) return compress_shani(state, data, blocks);
#endif
  compress_portable(state, data, blocks);
}

// FIPS 180-4, 5.1.1: the data is followed by a 1 bit, zeros, and its length in bits as a 64-bit
// number, the most significant byte first. tail: what is left of the data after whole blocks.
Digest finish(State state, std::span<const std::uint8_t> tail, std::uint64_t bytes,
              decltype(compress) compress_blocks) {
  std::uint8_t last[128] = {};
  std::copy(tail.begin(), tail.end(), last);
  last[tail.size()] = 0x80;
  const std::size_t size = tail.size() < 56 ? 64 : 128;
  for (std::size_t i = 0; i < 8; ++i) {
    last[size - 1 - i] = static_cast<std::uint8_t>((bytes * 8) >> (8 * i));
  }
  compress_blocks(state, last, size / 64);
  wipe(last, sizeof(last));
  Digest out;
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return out;
}

}  // namespace

void Hash256::update(std::span<const std::uint8_t> data) {
  const std::size_t held = bytes_ % 64;
  bytes_ += data.size();
  if (held > 0) {
    const std::size_t take = std::min(64 - held, data.size());
    std::copy_n(data.begin(), take, block_.begin() + static_cast<std::ptrdiff_t>(held));
    data = data.subspan(take);
    if (held + take < 64) return;
    compress(state_, block_.data(), 1);
  }
  compress(state_, data.data(), data.size() / 64);
  const auto rest = data.last(data.size() % 64);
  std::copy(rest.begin(), rest.end(), block_.begin());
}

Digest Hash256::digest() const {
  return finish(state_, std::span(block_).first(bytes_ % 64), bytes_, compress);
}

Digest hash256(std::span<const std::uint8_t> data) {
  Hash256 hash;
  hash.update(data);
  return hash.digest();
}

Digest detail::hash256_portable(std::span<const std::uint8_t> data) {
  State state = Hash256::kInitial;
  compress_portable(state, data.data(), data.size() / 64);
  return finish(state, data.last(data.size() % 64), data.size(), compress_portable);
}

}  // namespace jali
