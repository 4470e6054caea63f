// How the tests damage bytes, and what a loader must make of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/wire/frame.h"

namespace jali::testing {

using wire::Bytes;

/// The sets of parameters in these tests are insecure.
inline constexpr wire::Limits kLimits{std::size_t{1} << 24, 0};

enum class Outcome { accepted, refused };

/// Calls load(), which reads the bytes and writes the object again. It must give the same bytes, or
/// throw an error of the kinds that say that bytes are bad, with a sentence.
template <class Load>
Outcome judged(const std::string& what, const Bytes& bytes, const Load& load) {
  try {
    const Bytes again = load();
    EXPECT_EQ(again, bytes) << what << ": accepted as something else";
    return Outcome::accepted;
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::corrupt_data:
      case ErrorCode::version:
      case ErrorCode::params_mismatch:
      case ErrorCode::limit_exceeded: break;
      default:
        ADD_FAILURE() << what << ": " << error_code_name(error.code()) << ": " << error.what();
    }
    EXPECT_GT(std::strlen(error.what()), 20u);
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": not a jali::Error: " << error.what();
  }
  return Outcome::refused;
}

/// With a checksum that fits, so that the contents decide.
inline Bytes sealed(Bytes bytes) {
  if (bytes.size() >= wire::kFrameBytes) wire::seal_frame(bytes);
  return bytes;
}

inline std::span<const std::uint8_t> payload_of(const Bytes& bytes) {
  return std::span(bytes).subspan(wire::kHeaderBytes, bytes.size() - wire::kFrameBytes);
}

/// The same frame with another payload.
inline Bytes with_payload(const Bytes& valid, std::span<const std::uint8_t> payload) {
  Bytes out(valid.begin(), valid.begin() + wire::kHeaderBytes);
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize(out.size() + wire::kChecksumBytes);
  return sealed(std::move(out));
}

/// With another number at an offset of the payload.
template <class T>
Bytes patched(Bytes bytes, std::size_t payload_offset, T value) {
  std::memcpy(&bytes.at(wire::kHeaderBytes + payload_offset), &value, sizeof(value));
  return sealed(std::move(bytes));
}

inline Bytes cut(const Bytes& bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

/// Sizes to cut to: all below `head`, the last 40, and `some` at random.
template <class Random>
std::vector<std::size_t> cuts(std::size_t size, std::size_t head, int some, Random& random) {
  std::vector<std::size_t> out;
  for (std::size_t at = 0; at < std::min(size, head); ++at) out.push_back(at);
  for (std::size_t k = 1; k <= 40 && k < size; ++k) out.push_back(size - k);
  for (int k = 0; k < some; ++k) out.push_back(random() % size);
  return out;
}

inline Bytes flipped(Bytes bytes, std::size_t bit) {
  bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  return bytes;
}

/// With a run of random bytes, a run moved, or a run of one value, as the number of the case says.
template <class Random>
Bytes scrambled(const Bytes& valid, int number, Random& random) {
  Bytes bad = valid;
  const std::size_t size = 1 + random() % std::min<std::size_t>(64, bad.size() / 2);
  const std::size_t from = random() % (bad.size() - size), to = random() % (bad.size() - size);
  for (std::size_t i = 0; i < size; ++i) {
    bad[to + i] = number % 3 == 0   ? static_cast<std::uint8_t>(random())
                  : number % 3 == 1 ? valid[from + i]
                                    : static_cast<std::uint8_t>(number % 2 == 0 ? 0xff : 0);
  }
  return bad;
}

}  // namespace jali::testing
