// Which object each operand of an operation is, and of what kind.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "jali/base/at_fork.h"
#include "jali/device/block_ids.h"

namespace jali::backend {

/// What an operand holds. scratch: what is no ciphertext of its own, such as lifted digits, sums
/// over the primes of a level and of P, and random residues.
enum class Kind : std::uint8_t {
  ciphertext,
  plaintext,
  key,
  scratch,
  host,  // memory of the host that belongs to the caller
  unknown  // ciphertext or plaintext or scratch: what an operation says that takes any residues
};
const char* name_of(Kind kind);

/// Memory that an operation touches: an object, and how many bytes from which offset are read or
/// written there. Two operations depend on each other if an extent that one writes overlaps an
/// extent of the other. An object is a block of the device's pool, so that its id outlives it. See
/// docs/format.md.
struct Extent {
  Kind kind = Kind::unknown;
  std::uint64_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

namespace trace {

/// Gives operands their ids and kinds. Safe to use from many threads.
class Objects {
 public:
  /// The extent of these bytes. An object's kind is what the first operation said of which the
  /// table tells the kind.
  Extent read(Kind kind, const void* data, std::uint64_t bytes);
  Extent write(Kind kind, const void* data, std::uint64_t bytes);
  /// Names the kinds of written extents that are not known yet: those of the operands, if all are
  /// plaintexts; scratch, if there are none.
  void settle(std::span<Extent> writes, std::span<const Extent> reads);
  const std::shared_ptr<device::BlockIds>& ids() const { return ids_; }

 private:
  Extent place(Kind kind, const void* data, std::uint64_t bytes);

  const std::shared_ptr<device::BlockIds> ids_ = std::make_shared<device::BlockIds>();
  ForkSafe<std::mutex> mutex_;
  std::unordered_map<std::uint64_t, Kind> kinds_;  // by id
};

}  // namespace trace
}  // namespace jali::backend
