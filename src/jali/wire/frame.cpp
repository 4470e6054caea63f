#include "jali/wire/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/hash.h"

namespace jali::wire {

static_assert(std::endian::native == std::endian::little, "the format is little end first");

namespace {

constexpr std::uint8_t kMagic[4] = {'J', 'A', 'L', 'I'};

std::string cannot_read(const std::string& why) { return "cannot read these bytes: " + why; }

/// SHA-256 of the bytes, in pieces that take some 10 ms each, because sets of keys have gigabytes.
/// Calls the checkpoint before each piece.
Digest digest_of(std::span<const std::uint8_t> bytes, const Checkpoint& checkpoint) {
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  Hash256 hash;
  while (!bytes.empty()) {
    if (checkpoint) checkpoint();
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    hash.update(piece);
    bytes = bytes.subspan(piece.size());
  }
  return hash.digest();
}

}  // namespace

const char* object_name(Object object) noexcept {
  // A kind that not every scheme has.
  if (object == Object{7}) return "ciphertext of a public key";
  switch (object) {
    case Object::params: return "parameter set";
    case Object::plaintext: return "plaintext";
    case Object::ciphertext: return "ciphertext";
    case Object::public_key: return "public key";
    case Object::switch_key: return "switching key";
    case Object::evaluation_keys: return "set of evaluation keys";
    case Object::manifest: return "manifest";
    case Object::program: return "compiled program";
    case Object::message: return "message";
    case Object::graph: return "recorded graph";
    case Object::secret_key: return "secret key";
  }
  return "kind of object that this build does not know";
}

std::uint64_t payload_bytes(std::span<const std::uint8_t, kHeaderBytes> header) {
  require<CorruptData>(std::equal(std::begin(kMagic), std::end(kMagic), header.begin()),
                       [] { return cannot_read("they are not an object of this library"); });
  std::uint16_t version = 0;
  std::memcpy(&version, &header[4], sizeof(version));
  require<VersionError>(version == kFormatVersion, [&] {
    return cannot_read("their format has version " + std::to_string(version) +
                       ", this build reads version " + std::to_string(kFormatVersion) +
                       ": use the release of Jali that wrote them");
  });
  std::uint64_t length = 0;
  std::memcpy(&length, &header[40], sizeof(length));
  return length;
}

Kind checked_kind(std::span<const std::uint8_t> header, Kind expected) {
  const Kind kind{static_cast<Scheme>(header[6]), static_cast<Object>(header[7])};
  require<CorruptData>(kind == expected, [&] {
    const std::string of = kind.object == expected.object ? " of another scheme" : "";
    return cannot_read(std::string("they are a ") + object_name(kind.object) + of + ", not a " +
                       object_name(expected.object));
  });
  return kind;
}

Frame open_frame(std::span<const std::uint8_t> bytes, const Limits& limits,
                 const Checkpoint& checkpoint) {
  require<LimitExceeded>(bytes.size() <= limits.max_bytes, [&] {
    return cannot_read(std::to_string(bytes.size()) + " bytes are more than the limit of " +
                       std::to_string(limits.max_bytes) + ": raise max_bytes to read them");
  });
  require<CorruptData>(bytes.size() >= kFrameBytes, [&] {
    return cannot_read("they are " + std::to_string(bytes.size()) +
                       ", too few for any object: the end is missing");
  });
  const std::uint64_t length = payload_bytes(bytes.first<kHeaderBytes>());
  require<CorruptData>(length == bytes.size() - kFrameBytes, [&] {
    return cannot_read("the payload has " + std::to_string(bytes.size() - kFrameBytes) +
                       " bytes, the header says " + std::to_string(length));
  });
  const auto body = bytes.first(bytes.size() - kChecksumBytes);
  const Digest digest = digest_of(body, checkpoint);
  // All bytes are compared, without a branch, because they may be those of a secret key.
  unsigned difference = 0;
  for (std::size_t i = 0; i < kChecksumBytes; ++i) difference |= digest[i] ^ bytes[body.size() + i];
  declassify(difference);
  require<CorruptData>(difference == 0, kDamaged);
  Frame frame;
  frame.kind = {static_cast<Scheme>(bytes[6]), static_cast<Object>(bytes[7])};
  std::copy_n(bytes.begin() + 8, frame.params_hash.size(), frame.params_hash.begin());
  frame.payload = body.subspan(kHeaderBytes);
  return frame;
}

Frame open_frame(std::span<const std::uint8_t> bytes, Kind expected, const Limits& limits,
                 const Checkpoint& checkpoint) {
  const Frame frame = open_frame(bytes, limits, checkpoint);
  checked_kind(bytes, expected);
  return frame;
}

void seal_frame(std::span<std::uint8_t> bytes, const Checkpoint& checkpoint) {
  require<InternalError>(bytes.size() >= kFrameBytes, "seal_frame: too short for a frame");
  const std::uint64_t length = bytes.size() - kFrameBytes;
  std::memcpy(&bytes[40], &length, sizeof(length));
  const Digest digest = digest_of(bytes.first(bytes.size() - kChecksumBytes), checkpoint);
  std::copy_n(digest.begin(), kChecksumBytes, bytes.end() - kChecksumBytes);
}

}  // namespace jali::wire
