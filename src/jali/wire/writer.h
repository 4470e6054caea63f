// Builds the bytes of one object.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "jali/wire/frame.h"

namespace jali::wire {

/// Integers and doubles (IEEE 754) are written little-endian and without padding. Bytes is a type of vector; the one for
/// secrets wipes its memory.
template <class Bytes = std::vector<std::uint8_t>>
class BasicWriter {
 public:
  /// payload_bytes: how many bytes to reserve. A writer of secrets reserves all that it will write.
  BasicWriter(Kind kind, const ParamsHash& params_hash, std::size_t payload_bytes) {
    bytes_.reserve(kFrameBytes + payload_bytes);
    for (const char c : {'J', 'A', 'L', 'I'}) u8(static_cast<std::uint8_t>(c));
    u16(kFormatVersion);
    u8(static_cast<std::uint8_t>(kind.scheme));
    u8(static_cast<std::uint8_t>(kind.object));
    raw(params_hash);
    u64(0);
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
    bytes_.insert(bytes_.end(), count, 0);
    return std::span(bytes_).last(count);
  }

  /// The finished frame. The writer is empty afterwards.
  Bytes finish(const Checkpoint& checkpoint = {}) {
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

  Bytes bytes_;
};

using Writer = BasicWriter<>;

}  // namespace jali::wire
