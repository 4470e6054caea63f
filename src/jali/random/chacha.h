// ChaCha20 blocks (RFC 8439, section 2.3), several at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::random {

/// Blocks are made in groups of this many, a multiple of the number that any instruction set makes
/// at once.
inline constexpr std::size_t kGroupBlocks = 16;
inline constexpr std::size_t kGroupBytes = 64 * kGroupBlocks;

/// Writes `groups` groups of keystream, beginning with block `state[12]`. state: the 16 words of
/// RFC 8439, section 2.3. state[12], the block counter, is a multiple of kGroupBlocks and is
/// advanced by the blocks written, modulo 2^32.
using ChaChaFn = void(std::uint32_t* state, std::size_t groups, std::uint8_t* out);
ChaChaFn chacha20_portable, chacha20_avx2, chacha20_avx512;

/// The fastest of them that this machine can run. All give the same bytes.
ChaChaFn* chacha20_best();

}  // namespace jali::random
