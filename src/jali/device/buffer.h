// Blocks of a device's memory: 64-byte aligned, drawn from a pool that keeps freed blocks for reuse,
// because fresh pages from the operating system cost more than most operations on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  bool secret() const noexcept { return secret_; }
  /// Whether the host may dereference data().
  bool host_accessible() const noexcept;
  /// The memory it lies in; null for an empty one.
  Memory* memory() const noexcept;
  void copy_out(void* host) const;  // all of it

 private:
  friend class Pool;
  Buffer(std::shared_ptr<Pool> pool, void* data, std::size_t bytes, bool secret) noexcept;
  std::shared_ptr<Pool> pool_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool secret_ = false;
};

/// A thread-safe pool of blocks. A block stays valid after its pool's handles are gone. Freed blocks are reused in
/// the order of the memory's own operations, because all users of one memory are on one stream.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// wipe: every block is overwritten before it is reused or returned to the system (for secrets).
  /// poison: freed blocks are filled with kPoison, so that a use after that shows (tests).
  static std::shared_ptr<Pool> create(bool wipe = false,
                                      std::shared_ptr<Memory> memory = host_memory(),
                                      bool poison = false);
  /// Cuts blocks from regions, in which freed blocks join their neighbours. Whatever the sizes of blocks, the pool
  /// keeps little more memory than is in use at once. first: bytes of the first region; later ones are smaller.
  static std::shared_ptr<Pool> of_regions(std::size_t first, std::shared_ptr<Memory> memory,
                                          bool poison = false);
  static constexpr std::uint8_t kPoison = 0xff;  // no residue: all words lie above every modulus
  ~Pool();

  /// If memory is short, cached blocks are given back first. Then throws OutOfMemory, which names the size asked for,
  /// what is free and what would fit. secret: this block is wiped before it is reused.
  Buffer allocate(std::size_t bytes, bool secret = false);
  /// Gives cached free blocks back to the system.
  void trim() noexcept;
  std::size_t bytes_in_use() const;
  std::size_t bytes_cached() const;
  /// The largest bytes_in_use since the last reset_peak.
  std::size_t peak_bytes() const;
  void reset_peak();
  /// The most that is in use at once while work runs, beyond what was before.
  std::size_t peak_of(const std::function<void()>& work);
  Memory& memory() const;

  /// While it lives, what the creating thread allocates from `from` comes from `to`. What the thread frees of `from`
  /// is kept until the end, because others may not reuse it before. If memory is short, what `from` has cached is given
  /// back, and nothing of `to`, because a recorded program goes on using what it freed.
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
  Buffer allocate(std::size_t bytes, bool secret,
                  Pool& spare);  // gives cached blocks of spare back
  void* take(std::size_t size, bool secret);  // of what is cached, or null
  /// A block of new memory: all of it, or the first of a region of so many bytes. Or null.
  void* extend(std::size_t size, std::size_t region);
  std::size_t rounded(std::size_t bytes) const noexcept;
  void release(void* data, std::size_t bytes, bool secret) noexcept;
  bool redirected() const noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jali::device
