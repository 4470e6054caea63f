#include "jali/wire/stream.h"

#include <algorithm>
#include <istream>
#include <ostream>
#include <utility>

#include "jali/base/error.h"
#include "jali/base/secret_vector.h"

namespace jali::wire {

namespace {

/// Fills the span as far as the source goes, and returns how many bytes it filled.
std::size_t fill(const Source& source, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t got = source.read(out.subspan(done));
    require<InternalError>(got <= out.size() - done, "a source gave more bytes than it was asked");
    if (got == 0) break;
    done += got;
  }
  return done;
}

void read_all(const Source& source, std::span<std::uint8_t> out) {
  require<CorruptData>(fill(source, out) == out.size(),
                       "cannot read these bytes: the end is missing");
}

/// Reads the header and returns the length of the payload.
std::uint64_t read_header(const Source& source, std::span<std::uint8_t, kHeaderBytes> header,
                          const Limits& limits) {
  read_all(source, header);
  const std::uint64_t length = payload_bytes(header);
  require<CorruptData>(
      !source.size || (*source.size >= kFrameBytes && length == *source.size - kFrameBytes), [&] {
        return "cannot read these bytes: there are " + std::to_string(*source.size) +
               ", the header says that " + std::to_string(length) + " lie between it and its end";
      });
  require<LimitExceeded>(
      limits.max_bytes >= kFrameBytes && length <= limits.max_bytes - kFrameBytes, [&] {
        return "cannot read these bytes: their header announces " + std::to_string(length) +
               ", more than the limit of " + std::to_string(limits.max_bytes) +
               ": raise max_bytes to read them";
      });
  return length;
}

}  // namespace

Sink sink_to(std::ostream& out) {
  return [&out](std::span<const std::uint8_t> bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    require<FileError>(static_cast<bool>(out), "the stream took no more bytes");
  };
}

Source source_of(std::istream& in) {
  return {[&in](std::span<std::uint8_t> out) {
            in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
            return static_cast<std::size_t>(in.gcount());
          },
          std::nullopt};
}

Sink with_progress(Sink sink, Progress progress, std::uint64_t total) {
  if (!progress) return sink;
  return [sink = std::move(sink), progress = std::move(progress), total,
          done = std::uint64_t{0}](std::span<const std::uint8_t> bytes) mutable {
    sink(bytes);
    done += bytes.size();
    progress(done, total);
  };
}

template <class Buffer>
Buffer read_object(const Source& source, const Limits& limits) {
  Buffer out(kHeaderBytes);
  const std::uint64_t length =
      read_header(source, std::span(out).template first<kHeaderBytes>(), limits);
  std::uint64_t left = length + kChecksumBytes;
  while (left > 0) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPieceBytes));
    out.resize(out.size() + piece);
    read_all(source, std::span(out).last(piece));
    left -= piece;
  }
  return out;
}

template Bytes read_object(const Source& source, const Limits& limits);
template SecretVector<std::uint8_t> read_object(const Source& source, const Limits& limits);

void require_end(const Source& source) {
  std::uint8_t byte = 0;
  require<CorruptData>(source.read({&byte, 1}) == 0,
                       "cannot read these bytes: more bytes follow the object's end");
}

FrameStream::FrameStream(const Source& source, Kind expected, const Limits& limits,
                         Progress progress)
    : source_(&source), progress_(std::move(progress)) {
  std::array<std::uint8_t, kHeaderBytes> header{};
  unread_ = read_header(source, header, limits);
  total_ = unread_ + kFrameBytes;
  kind_ = checked_kind(header, expected);
  std::copy_n(header.begin() + 8, params_hash_.size(), params_hash_.begin());
  hash_.update(header);
}

std::span<const std::uint8_t> FrameStream::next(std::size_t count) {
  if (count > filled_.size()) {
    require<InternalError>(count <= remaining(), "FrameStream::next: beyond the payload");
    const std::size_t kept = filled_.size();
    std::ranges::copy(filled_, buffer_.begin());  // to the front, where it does not lie already
    const std::size_t more = static_cast<std::size_t>(
        std::min<std::uint64_t>(unread_, std::max(count, kPieceBytes) - kept));
    if (buffer_.size() < kept + more) buffer_.resize(kept + more);
    const auto fresh = std::span(buffer_).subspan(kept, more);
    read_all(*source_, fresh);
    hash_.update(fresh);
    unread_ -= more;
    filled_ = std::span(buffer_).first(kept + more);
    if (progress_) progress_(total_ - unread_, total_);
  }
  const auto out = filled_.first(count);
  filled_ = filled_.subspan(count);
  return out;
}

void FrameStream::finish() {
  require<InternalError>(remaining() == 0, "FrameStream::finish: the payload was not read");
  std::array<std::uint8_t, kChecksumBytes> checksum{};
  read_all(*source_, checksum);
  const Digest digest = hash_.digest();
  require<CorruptData>(std::ranges::equal(checksum, std::span(digest).first(kChecksumBytes)),
                       kDamaged);
}

}  // namespace jali::wire
