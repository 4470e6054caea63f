// Reads the payload of one object: never past its end, never more than the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jali/wire/frame.h"

namespace jali::wire {

/// Every failure is thrown as CorruptData or LimitExceeded, "cannot read a ciphertext: ...".
class Reader {
 public:
  Reader(const Frame& frame, const Limits& limits)
      : kind_(frame.kind), rest_(frame.payload), memory_left_(limits.max_bytes) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int32_t i32() { return number<std::int32_t>(); }
  double f64() { return number<double>(); }
  /// A byte that is 0 or 1.
  bool flag();
  /// Finite and >= 0, and not -0, which is 0 in other bytes.
  double magnitude(const char* name);
  /// The next `count` bytes; a count beyond the end is CorruptData.
  std::span<const std::uint8_t> raw(std::uint64_t count);
  void copy_to(std::span<std::uint8_t> out);

  std::size_t remaining() const { return rest_.size(); }
  /// Call this before memory of `bytes` is allocated for the object. Throws LimitExceeded if all such memory
  /// together would exceed the limit.
  void charge(std::uint64_t bytes);
  /// Throws CorruptData, "cannot read a ciphertext: " + why, unless the condition holds.
  void check(bool condition, const char* why) const;
  [[noreturn]] void fail(const std::string& why) const;
  /// Nothing may be left.
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
  std::uint64_t memory_left_;
};

}  // namespace jali::wire
