// The envelope of every object: what it is, for which parameters, how long, and a checksum.
//
//   offset  bytes  field (integers little end first)
//        0      4  magic "JALI"
//        4      2  format version
//        6      1  scheme
//        7      1  what of it: a ciphertext, a key, ...
//        8     32  hash of the parameters
//       40      8  payload length L
//       48      L  payload
//     48+L     16  first 16 bytes of the SHA-256 of everything before
//
// The checksum finds accidental corruption. It is not authentication: whoever alters the bytes can
// compute it again. Transport and storage have to bind objects to their senders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/base/checkpoint.h"

namespace jali::wire {

inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 48;
inline constexpr std::size_t kChecksumBytes = 16;
inline constexpr std::size_t kFrameBytes = kHeaderBytes + kChecksumBytes;

using Bytes = std::vector<std::uint8_t>;
using ParamsHash = std::array<std::uint8_t, 32>;

/// What an object is, whatever its scheme.
enum class Object : std::uint8_t {
  params = 1,
  plaintext = 2,
  ciphertext = 3,
  public_key = 4,
  switch_key = 5,
  evaluation_keys = 6,
  secret_key = 16,
};

/// Whose object it is: rlwe for what all schemes over RLWE share. A scheme's own number stands where its kinds do
/// (wire/SCHEME.h).
enum class Scheme : std::uint8_t { rlwe = 1 };

struct Kind {
  Scheme scheme = Scheme::rlwe;
  Object object = Object::params;
  bool operator==(const Kind&) const = default;
};

/// "ciphertext", ...; and words for an object that is not known.
const char* object_name(Object object) noexcept;

/// What a loader may spend.
struct Limits {
  /// Bound on the input, and apart from it on the memory of the loaded object (residues as the engine
  /// holds them, which takes up to 5 times the bytes sent). Checked before anything is allocated.
  std::size_t max_bytes = std::size_t{1} << 32;
  /// The least security of parameters that are read: 128, 192 or 256, or 0 for any.
  int min_security = 128;
  /// Whether parameters that were written without the plan of their levels are searched for it, which may take
  /// minutes. For bytes of one's own.
  bool search = false;
};

struct Frame {
  Kind kind;
  ParamsHash params_hash{};
  std::span<const std::uint8_t> payload;
};

/// Checks magic, version, length and checksum. Throws CorruptData, VersionError or LimitExceeded.
/// Costs one pass over the bytes, in which `checkpoint` is called, and allocates nothing.
Frame open_frame(std::span<const std::uint8_t> bytes, const Limits& limits,
                 const Checkpoint& checkpoint = {});
/// The same for an object of one kind: another one is CorruptData.
Frame open_frame(std::span<const std::uint8_t> bytes, Kind expected, const Limits& limits,
                 const Checkpoint& checkpoint = {});

/// Writes length and checksum into a frame whose header and payload are in place: bytes is the whole
/// frame, at least kFrameBytes long.
void seal_frame(std::span<std::uint8_t> bytes, const Checkpoint& checkpoint = {});

}  // namespace jali::wire
