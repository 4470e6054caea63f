// Names of blocks of memory, which no later block at the same address has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "jali/base/at_fork.h"

namespace jali::device {

/// Knows the blocks of the pools that it watches (Pool::watch). Safe to use from many threads.
class BlockIds {
 public:
  struct Place {
    std::uint64_t id = 0;
    std::uint64_t offset = 0;  // bytes from where the block begins
  };

  /// A pool calls these for each of its blocks.
  void added(const void* data, std::size_t bytes);
  void removed(const void* data) noexcept;

  /// The block in which an address lies, if a watched pool gave it.
  std::optional<Place> block_of(const void* address);
  /// The same of any memory. What no watched pool gave is known by its address alone, so that one
  /// id may stand for several objects, one after the other.
  Place find(const void* address);
  /// An id that nothing else has.
  std::uint64_t fresh();

 private:
  struct Block {
    std::uintptr_t end = 0;
    std::uint64_t id = 0;
  };
  std::optional<Place> known(std::uintptr_t address) const;

  ForkSafe<std::mutex> mutex_;
  std::uint64_t next_ = 0;
  std::map<std::uintptr_t, Block> blocks_;  // by where they begin
  std::map<std::uintptr_t, std::uint64_t> outside_;  // ids of other memory
};

}  // namespace jali::device
