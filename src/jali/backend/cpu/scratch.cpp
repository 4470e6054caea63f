#include "jali/backend/cpu/scratch.h"

#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::backend::cpu {

AlignedBlock::AlignedBlock(std::shared_ptr<device::Memory> memory, std::size_t bytes)
    : memory_(std::move(memory)), bytes_((bytes + 63) / 64 * 64) {
  data_ = static_cast<std::byte*>(memory_->allocate(bytes_));
  require<OutOfMemory>(data_ != nullptr, [&] {
    return device::not_allocated(bytes_, memory_->available(), "tables or working space") +
           ": use smaller batches or a smaller ring";
  });
}

AlignedBlock::AlignedBlock(AlignedBlock&& other) noexcept
    : memory_(std::move(other.memory_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

AlignedBlock& AlignedBlock::operator=(AlignedBlock&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AlignedBlock::~AlignedBlock() {
  if (data_ == nullptr) return;
  memory_->wipe(data_, bytes_);
  memory_->free(data_, bytes_);
}

AlignedBlock ScratchPool::take(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    for (AlignedBlock& block : free_) {
      if (block.bytes() >= bytes) {
        std::swap(block, free_.back());
        AlignedBlock taken = std::move(free_.back());
        free_.pop_back();
        return taken;
      }
    }
    // None is large enough: replace the smallest rather than hoard all sizes.
    if (!free_.empty()) free_.pop_back();
    free_.reserve(free_.capacity() + 1);
  }
  return {memory_, bytes};
}

void ScratchPool::give_back(AlignedBlock block) noexcept {
  const std::lock_guard lock(mutex_);
  if (free_.size() < free_.capacity()) free_.push_back(std::move(block));
}

}  // namespace jali::backend::cpu
