// Blocks of a device's memory: 64-byte aligned, drawn from a pool that keeps freed blocks for reuse,
// because fresh pages from the operating system cost more than most operations on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "jali/device/memory.h"

namespace jali::device {

class Pool;

/// Owning block of memory; returns to its pool when it dies. Contents start undefined.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() noexcept { return data_; }
  const void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Whether the host may dereference data().
  bool host_accessible() const noexcept;
  /// The memory it lies in; null for an empty one.
  Memory* memory() const noexcept;
  void copy_out(void* host) const;  // all of it

 private:
  friend class Pool;
  Buffer(std::shared_ptr<Pool> pool, void* data, std::size_t bytes) noexcept;
  std::shared_ptr<Pool> pool_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Thread-safe pool. A block outlives every handle to its pool that the caller drops.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// wipe: every block is overwritten before it is reused or returned to the system (for secrets).
  static std::shared_ptr<Pool> create(bool wipe = false,
                                      std::shared_ptr<Memory> memory = host_memory());
  ~Pool();

  /// Throws OutOfMemory, naming the size asked for.
  Buffer allocate(std::size_t bytes);
  /// Gives cached free blocks back to the operating system.
  void trim();
  std::size_t bytes_in_use() const;
  std::size_t bytes_cached() const;
  Memory& memory() const;

 private:
  friend class Buffer;
  Pool(bool wipe, std::shared_ptr<Memory> memory);
  void release(void* data, std::size_t bytes) noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jali::device
