// Where blocks of residues live. Host memory is one kind; a GPU backend brings its own.
#pragma once

#include <cstddef>
#include <memory>

namespace jali::device {

/// Raw memory of one device. Copies are ordered with the operations of the engine that owns it: a
/// copy_out returns when the bytes are there, the others may return before.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Aligned to 64 bytes at least; nullptr when there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* data, std::size_t bytes) noexcept = 0;
  /// Overwrites with zeros in a way that no compiler drops.
  virtual void wipe(void* data, std::size_t bytes) noexcept = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // within the device
  virtual void copy_in(void* to, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* from, std::size_t bytes) = 0;
  /// Whether the host may dereference its pointers.
  virtual bool host_accessible() const = 0;
};

std::shared_ptr<Memory> host_memory();

}  // namespace jali::device
