#include "jali/device/block_ids.h"

#include <iterator>

namespace jali::device {

namespace {
std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
}  // namespace

void BlockIds::added(const void* data, std::size_t bytes) {
  const std::uintptr_t begin = address_of(data), end = begin + bytes;
  const std::lock_guard lock(mutex_);
  blocks_.insert_or_assign(begin, Block{end, next_++});
  // Whatever lay here before has been freed.
  outside_.erase(outside_.lower_bound(begin), outside_.lower_bound(end));
}

void BlockIds::removed(const void* data) noexcept {
  const std::lock_guard lock(mutex_);
  blocks_.erase(address_of(data));
}

std::optional<BlockIds::Place> BlockIds::known(std::uintptr_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const auto& [begin, block] = *std::prev(after);
  if (address >= block.end) return std::nullopt;
  return Place{block.id, address - begin};
}

std::optional<BlockIds::Place> BlockIds::block_of(const void* address) {
  const std::lock_guard lock(mutex_);
  return known(address_of(address));
}

BlockIds::Place BlockIds::find(const void* address) {
  const std::uintptr_t at = address_of(address);
  const std::lock_guard lock(mutex_);
  if (const auto place = known(at)) return *place;
  const auto [other, is_new] = outside_.try_emplace(at, next_);
  if (is_new) ++next_;
  return {other->second, 0};
}

std::uint64_t BlockIds::fresh() {
  const std::lock_guard lock(mutex_);
  return next_++;
}

}  // namespace jali::device
