// A program or a recorded graph of the compiler as bytes: a text, and arrays of numbers that the
// text refers to. What they mean is the compiler's; that they are whole and finite is checked here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "jali/wire/frame.h"

namespace jali::wire {

inline constexpr Kind kProgram{Scheme::rlwe, Object::program};
inline constexpr Kind kGraph{Scheme::rlwe, Object::graph};

/// The most bytes of a document's text, and axes of one of its arrays.
inline constexpr std::uint32_t kMostText = 1 << 26;
inline constexpr std::size_t kMostAxes = 8;

/// An array in C order. It has at least one number, and refers to memory of others.
struct NumbersView {
  std::vector<std::uint32_t> shape;
  /// As many doubles as the shape says, little-endian. They need not be aligned.
  std::span<const std::uint8_t> values;
};

struct DocumentView {
  std::string_view text;
  std::vector<NumbersView> arrays;
};

/// Throws InvalidArgument for more axes or text than can be read, for arrays without a number, and
/// for numbers that are not finite.
Bytes to_bytes(Kind kind, const DocumentView& document);
/// What to_bytes wrote; it refers to the bytes. Throws CorruptData, VersionError and LimitExceeded.
/// It takes at most 96 bytes for each array.
DocumentView document_from_bytes(std::span<const std::uint8_t> bytes, Kind kind,
                                 const Limits& limits = {});

}  // namespace jali::wire
