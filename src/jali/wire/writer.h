// Builds the bytes of one object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/base/hash.h"
#include "jali/wire/frame.h"
#include "jali/wire/stream.h"

namespace jali::wire {

/// Integers and doubles (IEEE 754) are written little-endian and without padding. Bytes is a type
/// of vector; the one for secrets wipes its memory. If there is a sink, it gets the bytes in pieces
/// as they are made.
template <class Bytes = std::vector<std::uint8_t>>
class BasicWriter {
 public:
  /// payload_bytes: how many bytes to reserve. A writer of secrets reserves all that it will write.
  /// A writer with a sink needs the exact number, because the header comes first.
  BasicWriter(Kind kind, const ParamsHash& params_hash, std::uint64_t payload_bytes, Sink sink = {})
      : sink_(std::move(sink)), expected_(payload_bytes) {
    bytes_.reserve(kFrameBytes + (sink_ ? static_cast<std::size_t>(std::min<std::uint64_t>(
                                              payload_bytes, 2 * kPieceBytes))
                                        : checked_cast<std::size_t, LimitExceeded>(payload_bytes)));
    for (const char c : {'J', 'A', 'L', 'I'}) u8(static_cast<std::uint8_t>(c));
    u16(kFormatVersion);
    u8(static_cast<std::uint8_t>(kind.scheme));
    u8(static_cast<std::uint8_t>(kind.object));
    raw(params_hash);
    u64(sink_ ? payload_bytes : 0);
  }

  void u8(std::uint8_t x) { number(x); }
  void u16(std::uint16_t x) { number(x); }
  void u32(std::uint32_t x) { number(x); }
  void u64(std::uint64_t x) { number(x); }
  void i32(std::int32_t x) { number(x); }
  void f64(double x) { number(x); }
  void raw(std::span<const std::uint8_t> x) { bytes_.insert(bytes_.end(), x.begin(), x.end()); }
  /// Appends `count` zero bytes and returns them. They must be filled before the next call.
  std::span<std::uint8_t> extend(std::size_t count) {
    if (sink_ && bytes_.size() >= kPieceBytes) flush();
    bytes_.insert(bytes_.end(), count, 0);
    return std::span(bytes_).last(count);
  }

  /// The finished frame, or nothing if a sink has it. The writer is empty afterwards.
  Bytes finish(const Checkpoint& checkpoint = {}) {
    if (sink_) {
      flush();
      require<InternalError>(flushed_ == kHeaderBytes + expected_,
                             "an object has other bytes than were computed: please report");
      const Digest digest = hash_.digest();
      sink_(std::span(digest).first(kChecksumBytes));
      return {};
    }
    extend(kChecksumBytes);
    seal_frame(bytes_, checkpoint);
    return std::move(bytes_);
  }

 private:
  template <class T>
  void number(T x) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(&x);
    bytes_.insert(bytes_.end(), p, p + sizeof(T));
  }

  void flush() {
    hash_.update(bytes_);
    sink_(bytes_);
    flushed_ += bytes_.size();
    bytes_.clear();
  }

  Bytes bytes_;
  Sink sink_;
  Hash256 hash_;  // of what the sink has
  std::uint64_t expected_, flushed_ = 0;
};

using Writer = BasicWriter<>;

}  // namespace jali::wire
