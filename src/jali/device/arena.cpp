#include "jali/device/arena.h"

#include <iterator>

namespace jali::device {

void Arena::insert(std::byte* data, std::size_t bytes) {
  free_.emplace(data, bytes);
  by_size_.emplace(bytes, data);
  free_bytes_ += bytes;
}

void Arena::erase(std::map<std::byte*, std::size_t>::iterator at) {
  by_size_.erase({at->second, at->first});
  free_bytes_ -= at->second;
  free_.erase(at);
}

void Arena::add(Region region) {
  auto* data = static_cast<std::byte*>(region.data);
  regions_.emplace(data, region.bytes);
  insert(data, region.bytes);
}

void* Arena::take(std::size_t bytes) {
  const auto best = by_size_.lower_bound({bytes, nullptr});
  if (best == by_size_.end()) return nullptr;
  const auto [size, data] = *best;
  erase(free_.find(data));
  if (size > bytes) insert(data + bytes, size - bytes);
  return data;
}

// Neighbours of different regions stay apart.
void Arena::give(void* data, std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(data);
  auto after = free_.lower_bound(begin);
  if (after != free_.begin() && !regions_.contains(begin)) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      erase(before);
    }
  }
  if (after != free_.end() && begin + bytes == after->first && !regions_.contains(after->first)) {
    bytes += after->second;
    erase(after);
  }
  insert(begin, bytes);
}

std::vector<Arena::Region> Arena::release() {
  std::vector<Region> out;
  for (auto region = regions_.begin(); region != regions_.end();) {
    const auto at = free_.find(region->first);
    if (at == free_.end() || at->second != region->second) {
      ++region;
      continue;
    }
    out.push_back({region->first, region->second});
    erase(at);
    region = regions_.erase(region);
  }
  return out;
}

}  // namespace jali::device
