// Blocks of a device's memory. They are aligned to 64 bytes and come from a pool. The pool keeps
// freed blocks for reuse, because fresh pages from the operating system cost more than most
// operations on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "jali/device/memory.h"

namespace jali::device {

class BlockIds;
class Pool;

/// Owns a block of memory, whose contents are undefined at first. The block returns to its pool
/// when this is destroyed.
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
  bool secret() const noexcept { return secret_; }
  /// Whether the host may dereference data().
  bool host_accessible() const noexcept;
  /// The memory in which the block lies; null if the buffer is empty.
  Memory* memory() const noexcept;
  /// Copies the whole block to the host.
  void copy_out(void* host) const;

 private:
  friend class Pool;
  Buffer(std::shared_ptr<Pool> pool, void* data, std::size_t bytes, bool secret) noexcept;
  std::shared_ptr<Pool> pool_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool secret_ = false;
};

/// A thread-safe pool of blocks. A block keeps its pool alive. Of a host's memory it holds no more
/// than 1.5 times the most that was in use at once, and 256 MiB. A freed block can be reused at
/// once, because all users of one memory are on one stream, which orders their operations.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// wipe: every block is overwritten before it is reused or returned to the system, for secrets.
  /// poison: freed blocks are filled with kPoison, so that tests notice if one is used after it was
  /// freed.
  static std::shared_ptr<Pool> create(bool wipe = false,
                                      std::shared_ptr<Memory> memory = host_memory(),
                                      bool poison = false);
  /// Cuts blocks from regions, in which freed blocks join their neighbours. Whatever the sizes of
  /// blocks, the pool keeps little more memory than is in use at once. first: bytes of the first
  /// region; later ones are smaller.
  static std::shared_ptr<Pool> of_regions(std::size_t first, std::shared_ptr<Memory> memory,
                                          bool poison = false);
  static constexpr std::uint8_t kPoison = 0xff;  // words of such bytes are above every modulus
  ~Pool();

  /// A block of `bytes`. If memory is short, cached blocks are given back to the system first. If
  /// that is not enough, throws OutOfMemory, which names the size asked for, what is free and what
  /// would fit. secret: this block is wiped before it is reused.
  Buffer allocate(std::size_t bytes, bool secret = false);
  /// Gives cached free blocks back to the system.
  void trim() noexcept;
  std::size_t bytes_in_use() const;
  std::size_t bytes_cached() const;
  /// The largest bytes_in_use since the last reset_peak.
  std::size_t peak_bytes() const;
  void reset_peak();
  /// Runs work, and gives by how many bytes its peak exceeds what was in use before.
  std::size_t peak_of(const std::function<void()>& work);
  /// From now on `ids` is told of every block that this pool gives and takes back, for as long as
  /// `ids` lives.
  void watch(const std::shared_ptr<BlockIds>& ids);
  Memory& memory() const;

  /// While it exists, what the thread that created it allocates from `from` comes from `to`. What
  /// this thread frees of `from` is kept until the end, because nobody else may reuse it before. If
  /// memory is short, blocks that `from` has cached are given back to the system, but none of `to`,
  /// because a recorded program goes on using what it has freed.
  class Redirect {
   public:
    Redirect(std::shared_ptr<Pool> from, std::shared_ptr<Pool> to);
    ~Redirect();
    Redirect(const Redirect&) = delete;
    Redirect& operator=(const Redirect&) = delete;

   private:
    std::shared_ptr<Pool> from_;
  };

 private:
  friend class Buffer;
  Pool(bool wipe, std::shared_ptr<Memory> memory, bool poison);
  /// If memory is short, the cached blocks of `spare` are given back to the system.
  Buffer allocate(std::size_t bytes, bool secret, Pool& spare);
  /// A cached block, or null.
  void* take(std::size_t size, bool secret);
  /// A block of new memory, or null. A pool of regions allocates a region of so many bytes, and
  /// cuts the block from it.
  void* extend(std::size_t size, std::size_t region);
  std::size_t rounded(std::size_t bytes) const noexcept;
  void release(void* data, std::size_t bytes, bool secret) noexcept;
  bool redirected() const noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jali::device
