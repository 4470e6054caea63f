// Keeps track of which parts of some regions of memory are free. It never reads or writes that
// memory.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace jali::device {

/// Allocates by best fit, and joins freed blocks with their free neighbours. Two threads must not
/// use it at once.
class Arena {
 public:
  struct Region {
    void* data;
    std::size_t bytes;
  };

  /// Adds a region, all of which is free.
  void add(Region region);
  /// A block of so many bytes, at least 1, or null if no free part is large enough.
  void* take(std::size_t bytes);
  /// Frees a block of this size that take() gave.
  void give(void* data, std::size_t bytes);
  /// Forgets the regions that are free as a whole, and gives them to the caller.
  std::vector<Region> release();
  std::size_t free_bytes() const noexcept { return free_bytes_; }

 private:
  void insert(std::byte* data, std::size_t bytes);
  void erase(std::map<std::byte*, std::size_t>::iterator at);

  std::map<std::byte*, std::size_t> regions_, free_;  // by address
  std::set<std::pair<std::size_t, std::byte*>> by_size_;  // what free_ holds
  std::size_t free_bytes_ = 0;
};

}  // namespace jali::device
