// Working memory of one engine: blocks are lent to one operation at a time and kept, so that
// operations allocate only when more of them run at once than ever before, or larger ones.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "jali/base/at_fork.h"
#include "jali/base/wipe.h"
#include "jali/device/memory.h"

namespace jali::backend::cpu {

/// Host memory, 64-byte aligned, wiped when it dies.
class AlignedBlock {
 public:
  AlignedBlock() = default;
  AlignedBlock(std::shared_ptr<device::Memory> memory, std::size_t bytes);  // throws OutOfMemory
  AlignedBlock(AlignedBlock&& other) noexcept;
  AlignedBlock& operator=(AlignedBlock&& other) noexcept;
  ~AlignedBlock();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<device::Memory> memory_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class ScratchPool {
 public:
  explicit ScratchPool(std::shared_ptr<device::Memory> memory) : memory_(std::move(memory)) {}

  class Lease {
   public:
    Lease(ScratchPool& pool, AlignedBlock block, std::size_t secret_bytes)
        : pool_(pool), block_(std::move(block)), secret_bytes_(secret_bytes) {}
    ~Lease() {
      wipe(block_.data(), secret_bytes_);
      pool_.give_back(std::move(block_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    std::byte* data() const { return block_.data(); }

   private:
    ScratchPool& pool_;
    AlignedBlock block_;
    std::size_t secret_bytes_;
  };

  Lease lend(std::size_t bytes) { return {*this, take(bytes), 0}; }
  /// Wiped when it is given back: for what was decrypted or will be encrypted.
  Lease lend_secret(std::size_t bytes) { return {*this, take(bytes), bytes}; }

 private:
  AlignedBlock take(std::size_t bytes);
  void give_back(AlignedBlock block) noexcept;
  std::shared_ptr<device::Memory> memory_;
  ForkSafe<std::mutex> mutex_;
  std::vector<AlignedBlock> free_;
};

}  // namespace jali::backend::cpu
