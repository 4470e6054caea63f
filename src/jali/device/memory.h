// The memory in which blocks of residues lie. Host memory is one kind, and a GPU has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace jali::device {

inline constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

/// The raw memory of one device. Copies are ordered with the other operations on the device.
/// copy_out returns when the bytes have arrived. The other copies may return before they are done.
class Memory {
 public:
  virtual ~Memory() = default;
  /// A block that is aligned to at least 64 bytes, or nullptr if not enough memory is left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* data, std::size_t bytes) noexcept = 0;
  /// Overwrites with zeros in a way that no compiler removes.
  virtual void wipe(void* data, std::size_t bytes) noexcept { fill(data, 0, bytes); }
  virtual void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // within the device
  virtual void copy_in(void* to, const void* host, std::size_t bytes) = 0;
  /// The same for secrets: returns when the bytes have arrived, and leaves no other copy on the
  /// host.
  virtual void copy_secret_in(void* to, const void* host, std::size_t bytes) {
    copy_in(to, host, bytes);
  }
  virtual void copy_out(void* host, const void* from, std::size_t bytes) = 0;
  /// Copies `rows` pieces of `bytes` each within the device. Pieces begin `from_stride` and
  /// `to_stride` bytes apart.
  virtual void copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                         std::size_t bytes, std::size_t rows);
  /// Interleaves blocks into one. Each block has `rows` pieces of `bytes`, which is a multiple
  /// of 64. Piece r of block k becomes piece r * from.size() + k. scatter is the inverse.
  virtual void gather(void* to, std::span<const void* const> from, std::size_t bytes,
                      std::size_t rows);
  virtual void scatter(std::span<void* const> to, const void* from, std::size_t bytes,
                       std::size_t rows);
  /// Copies from another memory of this kind, ordered with the work of both devices. Returns false
  /// if that is not possible, so that the bytes have to go through the host.
  virtual bool copy_from(Memory& /*other*/, void* /*to*/, const void* /*from*/,
                         std::size_t /*bytes*/) {
    return false;
  }
  /// Returns when all work that was asked of the device before is done.
  virtual void synchronize() {}
  /// Gives what the driver keeps for reuse back to the system.
  virtual void trim() noexcept {}
  /// The bytes that allocate could still give in total; kUnknown if the system does not say.
  virtual std::size_t available() const { return kUnknown; }
  /// Whether the host may dereference its pointers.
  virtual bool host_accessible() const = 0;
};

std::shared_ptr<Memory> host_memory();

/// The beginning of the message of OutOfMemory: "could not allocate 1.2 MiB (1234567 bytes) for
/// WHAT; 1.0 MiB (1048576 bytes) are free, so that a block of at most that would fit". Parts that
/// are kUnknown or empty are left out.
std::string not_allocated(std::size_t asked, std::size_t free, const std::string& what = {});
/// 1234567 -> "1.2 MiB (1234567 bytes)"
std::string readable_bytes(std::size_t bytes);

}  // namespace jali::device
