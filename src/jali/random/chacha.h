// ChaCha20 blocks (RFC 8439, section 2.3), several at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::random {

/// Blocks are made in groups of this many: a multiple of what every instruction set does at once.
inline constexpr std::size_t kGroupBlocks = 16;
inline constexpr std::size_t kGroupBytes = 64 * kGroupBlocks;

/// Writes `groups` groups of keystream from block `state[12]` on. state: the 16 words of the
/// section; state[12], the block counter, is a multiple of kGroupBlocks and moves on (modulo 2^32).
using ChaChaFn = void(std::uint32_t* state, std::size_t groups, std::uint8_t* out);
ChaChaFn chacha20_portable, chacha20_avx2, chacha20_avx512;

/// The fastest that this machine runs. All give the same bytes.
ChaChaFn* chacha20_best();

}  // namespace jali::random
