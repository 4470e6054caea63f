// Reads the payload of one object, never beyond its end and never more than the limits allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jali/base/error.h"
#include "jali/wire/frame.h"
#include "jali/wire/stream.h"

namespace jali::wire {

/// Every failure is a CorruptData or LimitExceeded whose message begins like "cannot read a
/// ciphertext: ".
class Reader {
 public:
  Reader(const Frame& frame, const Limits& limits)
      : kind_(frame.kind), rest_(frame.payload), memory_left_(limits.max_bytes) {}
  /// Reads the payload of a stream, which must outlive this.
  Reader(FrameStream& stream, const Limits& limits)
      : kind_(stream.kind()), stream_(&stream), memory_left_(limits.max_bytes) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int32_t i32() { return number<std::int32_t>(); }
  double f64() { return number<double>(); }
  /// Reads a byte, which must be 0 or 1.
  bool flag();
  /// Reads a double that must be finite and not negative. -0 is refused, because it would be a
  /// second way to write 0.
  double magnitude(const char* name);
  /// The next `count` bytes. They are valid until the next call. Throws CorruptData if fewer are
  /// left.
  std::span<const std::uint8_t> raw(std::uint64_t count);
  void copy_to(std::span<std::uint8_t> out);

  std::uint64_t remaining() const { return stream_ ? stream_->remaining() : rest_.size(); }
  /// Must be called before `bytes` of memory are allocated for the object. Throws LimitExceeded if
  /// all memory of the object together would exceed the limit.
  void charge(std::uint64_t bytes);
  /// What is left of that memory; and again, after memory that was charged has been freed.
  std::uint64_t memory_left() const { return memory_left_; }
  void set_memory_left(std::uint64_t bytes) { memory_left_ = bytes; }
  /// Throws CorruptData with the reason `why` unless the condition holds.
  void check(bool condition, const char* why) const;
  [[noreturn]] void fail(const std::string& why) const;
  /// Throws CorruptData with an error message of params/ up to its first colon, which says what is
  /// wrong. What follows is advice for those who choose parameters.
  [[noreturn]] void fail_without_advice(const Error& error) const;
  /// Throws CorruptData if bytes are left, or if the checksum of a stream is wrong.
  void finish() const;

 private:
  template <class T>
  T number() {
    T x{};
    copy_to({reinterpret_cast<std::uint8_t*>(&x), sizeof(T)});
    return x;
  }
  std::string cannot_read(const std::string& why) const;

  Kind kind_;
  std::span<const std::uint8_t> rest_;
  FrameStream* stream_ = nullptr;  // if not null, the payload comes from it and not from rest_
  std::uint64_t memory_left_;
};

}  // namespace jali::wire
