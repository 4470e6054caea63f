#include "jali/device/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#endif

namespace jali::device {

namespace {

/// Blocks of at least this size lie on huge pages if the system offers them. Operations walk a
/// dozen rows at once, and with small pages misses of the translation buffer cost a third of the
/// time of a key product.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) override {
    void* data = nullptr;
    const bool huge = bytes >= kHugePage;
    if (posix_memalign(&data, huge ? kHugePage : 64, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
    if (huge) madvise(data, bytes, MADV_HUGEPAGE);  // only a wish, so a refusal does not matter
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
  std::size_t available() const override {
    std::size_t free = kUnknown;
#ifdef __linux__
    std::ifstream info("/proc/meminfo");  // "MemAvailable:  12345 kB"
    for (std::string name, rest; info >> name; std::getline(info, rest)) {
      std::size_t kib = 0;
      if (name != "MemAvailable:" || !(info >> kib)) continue;
      free = kib << 10;
      break;
    }
    rlimit limit{};
    std::size_t pages = 0;  // the first number is of the whole address space
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        std::ifstream("/proc/self/statm") >> pages) {
      const std::size_t used = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
      free = std::min(free, limit.rlim_cur - std::min<std::size_t>(used, limit.rlim_cur));
    }
#endif
    return free;
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

std::string readable_bytes(std::size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char text[64];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s (%zu bytes)", value,
                kUnits[unit], bytes);
  return text;
}

std::string not_allocated(std::size_t asked, std::size_t free, const std::string& what) {
  std::string text = "could not allocate ";
  text +=
      asked == kUnknown ? "memory of a size that the driver does not name" : readable_bytes(asked);
  if (!what.empty()) text += " for " + what;
  if (free == kUnknown) return text;
  return text + "; " + readable_bytes(free) +
         " are free, so that a block of at most that would fit";
}

std::shared_ptr<Memory> host_memory() { return std::make_shared<HostMemory>(); }

}  // namespace jali::device
