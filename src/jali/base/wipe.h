// Overwriting secrets.
#pragma once

#include <cstddef>
#include <cstring>

namespace jali {

/// Overwrites memory in a way the compiler keeps: the barrier stops it from dropping stores to memory
/// that dies next.
inline void wipe(void* data, std::size_t bytes) noexcept {
  if (bytes > 0) std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

}  // namespace jali
