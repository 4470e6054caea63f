// Working memory of one Ops instance: blocks are lent to one operation at a time and kept, so that
// operations allocate only when more of them run at once than ever before, or larger ones.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace jali::backend::cpu {

/// 64-byte aligned memory, wiped when it dies: residues of a secret may have passed through it.
class AlignedBlock {
 public:
  AlignedBlock() = default;
  explicit AlignedBlock(std::size_t bytes);  // throws OutOfMemory
  AlignedBlock(AlignedBlock&& other) noexcept;
  AlignedBlock& operator=(AlignedBlock&& other) noexcept;
  ~AlignedBlock();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class ScratchPool {
 public:
  class Lease {
   public:
    Lease(ScratchPool& pool, AlignedBlock block) : pool_(pool), block_(std::move(block)) {}
    ~Lease() { pool_.give_back(std::move(block_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    std::byte* data() const { return block_.data(); }

   private:
    ScratchPool& pool_;
    AlignedBlock block_;
  };

  Lease lend(std::size_t bytes);

 private:
  void give_back(AlignedBlock block) noexcept;
  std::mutex mutex_;
  std::vector<AlignedBlock> free_;
};

}  // namespace jali::backend::cpu
