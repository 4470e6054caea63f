// Overwriting secrets.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace jali {

/// Overwrites memory with zeros. Without the barrier a compiler may drop stores to memory that is
/// freed next.
inline void wipe(void* data, std::size_t bytes) noexcept {
  if (bytes > 0) std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

/// Wipes the contents that the caller's vector has when this object is destroyed, also by an
/// exception.
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
