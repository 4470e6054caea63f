#include "jali/device/memory.h"

#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace jali::device {

namespace {

/// Blocks of this size are laid on huge pages where the system offers them: operations walk a dozen
/// rows at once, and misses of the translation buffer cost a third of a key product otherwise.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) override {
    void* data = nullptr;
    const bool huge = bytes >= kHugePage;
    if (posix_memalign(&data, huge ? kHugePage : 64, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
    if (huge) madvise(data, bytes, MADV_HUGEPAGE);  // a wish: refusal changes nothing
#endif
    return data;
  }
  void free(void* data, std::size_t) noexcept override { std::free(data); }
  void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept override {
    std::memset(data, byte, bytes);
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

void Memory::copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                       std::size_t bytes, std::size_t rows) {
  for (std::size_t i = 0; i < rows; ++i) {
    copy(static_cast<std::byte*>(to) + i * to_stride,
         static_cast<const std::byte*>(from) + i * from_stride, bytes);
  }
}

void Memory::gather(void* to, std::span<const void* const> from, std::size_t bytes,
                    std::size_t rows) {
  for (std::size_t k = 0; k < from.size(); ++k) {
    copy_rows(static_cast<std::byte*>(to) + k * bytes, from.size() * bytes, from[k], bytes, bytes,
              rows);
  }
}

void Memory::scatter(std::span<void* const> to, const void* from, std::size_t bytes,
                     std::size_t rows) {
  for (std::size_t k = 0; k < to.size(); ++k) {
    copy_rows(to[k], bytes, static_cast<const std::byte*>(from) + k * bytes, to.size() * bytes,
              bytes, rows);
  }
}

std::shared_ptr<Memory> host_memory() { return std::make_shared<HostMemory>(); }

}  // namespace jali::device
