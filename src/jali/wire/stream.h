// Bytes that come or go piece by piece: to and from files, sockets and C++ streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>

#include "jali/base/replace_file.h"
#include "jali/wire/frame.h"

namespace jali::wire {

/// How many bytes are taken or given at once, except for single rows of residues that are longer.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

using jali::Sink;

/// Called with how many bytes are done and how many there will be. If it throws, the work ends. The
/// bytes of objects are counted with 64 bits everywhere, also where memory has 32.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Gives the bytes of an object.
struct Source {
  /// Fills the front of the span and returns how many bytes it filled: 0 only at the end.
  std::function<std::size_t(std::span<std::uint8_t>)> read;
  /// How many bytes there are, if that is known.
  std::optional<std::uint64_t> size;
};

/// The stream must outlive the result. The sink throws FileError if the stream fails.
Sink sink_to(std::ostream& out);
Source source_of(std::istream& in);

/// The sink, which also tells the progress. total: the bytes of the object.
Sink with_progress(Sink sink, Progress progress, std::uint64_t total);

/// Reads the bytes of one object, and no byte after it. Memory grows with the bytes that come, not
/// with what their header says. Only the header is checked; from_bytes checks the rest. Errors are
/// those of open_frame.
template <class Buffer = Bytes>
Buffer read_object(const Source& source, const Limits& limits);

/// Throws CorruptData if the source has more bytes.
void require_end(const Source& source);

/// The payload of one object, piece by piece, for objects that are too large to lie in memory
/// twice. Its checksum is compared at the end.
class FrameStream {
 public:
  /// Reads the header. Throws CorruptData, VersionError or LimitExceeded, as open_frame does.
  /// source must outlive this.
  FrameStream(const Source& source, Kind expected, const Limits& limits, Progress progress = {});

  Kind kind() const { return kind_; }
  const ParamsHash& params_hash() const { return params_hash_; }
  /// How many bytes of the payload, by the header, were not given yet.
  std::uint64_t remaining() const { return filled_.size() + unread_; }
  /// The next bytes of the payload, at most remaining(). They are valid until the next call. Throws
  /// CorruptData if the source ends before them.
  std::span<const std::uint8_t> next(std::size_t count);
  /// Throws CorruptData unless the checksum follows the payload, all of which was given.
  void finish();

 private:
  const Source* source_;
  Progress progress_;
  Kind kind_;
  ParamsHash params_hash_{};
  Hash256 hash_;
  Bytes buffer_;
  std::span<std::uint8_t> filled_;  // the part of the buffer that was read and not given yet
  std::uint64_t unread_ = 0;        // bytes of the payload that are still in the source
  std::uint64_t total_ = 0;         // bytes of the object
};

}  // namespace jali::wire
