// The 128-bit integer that products of 64-bit residues live in.
#pragma once

#include <cstdint>

namespace jali::arith {

__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;

/// floor(a b / 2^64).
constexpr std::uint64_t mul_high(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((static_cast<uint128>(a) * b) >> 64);
}

}  // namespace jali::arith
