// Working memory for secrets whose size is known only at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "jali/base/wipe.h"

namespace jali {

/// Wipes memory before it gives it back.
template <class T>
struct WipingAllocator {
  using value_type = T;
  WipingAllocator() = default;
  template <class U>
  WipingAllocator(const WipingAllocator<U>&) noexcept {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* data, std::size_t count) noexcept {
    wipe(data, count * sizeof(T));
    std::allocator<T>().deallocate(data, count);
  }
  friend bool operator==(const WipingAllocator&, const WipingAllocator&) { return true; }
};

/// A vector whose memory is wiped when it is destroyed, also by an exception, and when it grows
/// into other memory.
template <class T>
using SecretVector = std::vector<T, WipingAllocator<T>>;

}  // namespace jali
