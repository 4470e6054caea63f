// Which parts of some regions of memory are free. Touches none of it.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace jali::device {

/// Best fit; freed blocks join their free neighbours. Not for use by two threads at once.
class Arena {
 public:
  struct Region {
    void* data;
    std::size_t bytes;
  };

  /// A new region, all of it free.
  void add(Region region);
  /// A block of so many bytes, at least 1, or null.
  void* take(std::size_t bytes);
  void give(void* data, std::size_t bytes);
  /// Regions of which nothing is taken: it forgets them.
  std::vector<Region> release();
  std::size_t free_bytes() const noexcept { return free_bytes_; }

 private:
  void insert(std::byte* data, std::size_t bytes);
  void erase(std::map<std::byte*, std::size_t>::iterator at);

  std::map<std::byte*, std::size_t> regions_, free_;        // by address
  std::set<std::pair<std::size_t, std::byte*>> by_size_;  // what free_ holds
  std::size_t free_bytes_ = 0;
};

}  // namespace jali::device
