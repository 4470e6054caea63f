#include "jali/device/memory.h"

#include <cstdlib>
#include <cstring>

namespace jali::device {

namespace {

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) override { return std::aligned_alloc(64, bytes); }
  void free(void* data, std::size_t) noexcept override { std::free(data); }
  void wipe(void* data, std::size_t bytes) noexcept override {
    std::memset(data, 0, bytes);
    asm volatile("" : : "r"(data) : "memory");
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void copy_in(void* to, const void* host, std::size_t bytes) override {
    std::memcpy(to, host, bytes);
  }
  void copy_out(void* host, const void* from, std::size_t bytes) override {
    std::memcpy(host, from, bytes);
  }
  bool host_accessible() const override { return true; }
};

}  // namespace

std::shared_ptr<Memory> host_memory() { return std::make_shared<HostMemory>(); }

}  // namespace jali::device
