// Working memory for secrets whose size is known at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "jali/base/wipe.h"

namespace jali {

/// Gives memory back wiped.
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

/// A vector that is wiped when it dies or moves to other memory, exceptions included.
template <class T>
using SecretVector = std::vector<T, WipingAllocator<T>>;

}  // namespace jali
