// Searches all memory of this process, as an attacker who can read it would.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "jali/base/wipe.h"

namespace jali::testing {

/// The 64-bit words to look for. They are kept masked, so that the search does not find its own
/// copies.
class MemoryScan {
 public:
  /// Adds the words of a block of memory. Small words are left out, because they occur everywhere.
  void learn(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, static_cast<const std::byte*>(data) + i, 8);
      if (word >> 36 != 0 && (word & 0xffffffff) >> 16 != 0) {
        masked_.insert(word ^ kMask);
        wipe(&word, sizeof(word));
      }
    }
  }
  std::size_t size() const { return masked_.size(); }

  /// Counts the words that follow another of the words anywhere in writable memory; a single one
  /// may be chance. The stack below this frame, to which finished functions saved registers, is
  /// cleared first and so not searched. So are vector registers, which the system's dynamic linker
  /// saves to the stack when a library calls another for the first time.
  [[gnu::noinline]] std::size_t found() const {
    clear_registers();
    clear_stack();
    return search();
  }

 private:
  /// Called right after clear_stack, so that its frame lies in what was cleared.
  [[gnu::noinline]] std::size_t search() const {
    std::vector<std::uint64_t> chunk(std::size_t{1} << 13);
    const auto* const own = reinterpret_cast<const std::byte*>(chunk.data());
    std::size_t count = 0;
    const int memory = open("/proc/self/mem", O_RDONLY);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin = 0, end = 0;
      char access[5] = {};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) != 3) continue;
      // Larger maps are a sanitizer's shadow memory: terabytes that are not the program's.
      if (access[1] != 'w' || end - begin > (1UL << 32)) continue;
      for (unsigned long at = begin; at < end; at += chunk.size() * 8) {
        const ssize_t got = pread(memory, chunk.data(), std::min(chunk.size() * 8, end - at),
                                  static_cast<off_t>(at));
        bool before = false;
        for (ssize_t i = 0; i < got / 8; ++i) {
          const auto* const address = reinterpret_cast<const std::byte*>(at) + 8 * i;
          if (address >= own && address < own + chunk.size() * 8) continue;
          const bool here = masked_.contains(chunk[static_cast<std::size_t>(i)] ^ kMask);
          count += here && before;
          before = here;
        }
      }
    }
    close(memory);
    wipe(chunk.data(), chunk.size() * 8);
    return count;
  }

  /// Compilers clear registers 0 to 15 alone when AVX code ends.
  static void clear_registers() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) clear_upper_registers();
#endif
  }
#if defined(__x86_64__)
  [[gnu::noinline, gnu::target("avx512f")]] static void clear_upper_registers() {
    asm volatile(
        ".irp i, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n"
        "vpxorq %%zmm\\i, %%zmm\\i, %%zmm\\i\n"
        ".endr\n" ::
            : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
              "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
  }
#endif
  /// Clears the stack below this frame.
  [[gnu::noinline]] static void clear_stack() {
    volatile std::uint8_t below[1 << 16];
    for (auto& byte : below) byte = 0;
  }
  static constexpr std::uint64_t kMask = 0x5bd1e9955bd1e995;
  std::unordered_set<std::uint64_t> masked_;
};

}  // namespace jali::testing
