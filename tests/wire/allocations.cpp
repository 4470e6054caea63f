#include "allocations.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocated{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocated += bytes;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

}  // namespace

std::size_t jali::testing::allocated_bytes() { return allocated; }

void* operator new(std::size_t bytes) {
  if (void* data = counted(bytes == 0 ? 1 : bytes, 16)) return data;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes == 0 ? 1 : bytes, 16);
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return operator new(bytes, std::nothrow);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { std::free(data); }
// The pool's: HostMemory::allocate.
extern "C" int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  *data = counted(bytes, alignment);
  return *data != nullptr ? 0 : ENOMEM;
}
