// Overwriting secrets.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace jali {

/// Overwrites memory in a way the compiler keeps: the barrier stops it from dropping stores to memory
/// that dies next.
inline void wipe(void* data, std::size_t bytes) noexcept {
  if (bytes > 0) std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

/// Wipes a vector that belongs to somebody else, as it is when this dies, exceptions included.
template <class T>
class WipedAtEnd {
 public:
  explicit WipedAtEnd(std::vector<T>& values) : values_(values) {}
  WipedAtEnd(const WipedAtEnd&) = delete;
  WipedAtEnd& operator=(const WipedAtEnd&) = delete;
  ~WipedAtEnd() { wipe(values_.data(), values_.size() * sizeof(T)); }

 private:
  std::vector<T>& values_;
};

}  // namespace jali
