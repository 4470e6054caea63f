// The bit-reversed order of the transforms.
#pragma once

#include <cstdint>

namespace jali::arith {

/// The `bits` low bits of x in reverse order; 0 <= bits <= 32.
constexpr std::uint32_t bit_reverse(std::uint32_t x, int bits) {
  std::uint32_t r = 0;
  for (int i = 0; i < bits; ++i) r |= ((x >> i) & 1u) << (bits - 1 - i);
  return r;
}

}  // namespace jali::arith
