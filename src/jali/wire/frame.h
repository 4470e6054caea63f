// The envelope of every object. It says what the object is, for which parameters and how long, and
// has a checksum.
//
//   offset  bytes  field (integers are little-endian)
//        0      4  magic "JALI"
//        4      2  format version
//        6      1  scheme
//        7      1  kind of object: a ciphertext, a key, ...
//        8     32  hash of the parameters
//       40      8  payload length L
//       48      L  payload
//     48+L     16  first 16 bytes of the SHA-256 of everything before
//
// The checksum finds accidental corruption. It is not authentication, because whoever alters the
// bytes can compute it again. Transport and storage have to bind objects to their senders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/base/checkpoint.h"
#include "jali/base/hash.h"

namespace jali::wire {

inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 48;
inline constexpr std::size_t kChecksumBytes = 16;
inline constexpr std::size_t kFrameBytes = kHeaderBytes + kChecksumBytes;

using Bytes = std::vector<std::uint8_t>;
using ParamsHash = std::array<std::uint8_t, 32>;

/// The kind of an object, which is the same for every scheme. Manifests and messages are those of
/// compiled programs (client/); programs and graphs are the compiler's (document.h).
enum class Object : std::uint8_t {
  params = 1,
  plaintext = 2,
  ciphertext = 3,
  public_key = 4,
  switch_key = 5,
  evaluation_keys = 6,
  manifest = 8,
  program = 9,
  message = 10,
  graph = 11,
  secret_key = 16,
};

/// The scheme of an object. rlwe stands for everything that all schemes over RLWE share.
/// wire/SCHEME.h defines the number of each scheme.
enum class Scheme : std::uint8_t { rlwe = 1 };

struct Kind {
  Scheme scheme = Scheme::rlwe;
  Object object = Object::params;
  bool operator==(const Kind&) const = default;
};

/// The name that error messages use, e.g. "ciphertext"; a number that is not known has a name, too.
const char* object_name(Object object) noexcept;

/// What a loader may spend.
struct Limits {
  /// A bound on the bytes read. It is also, separately, a bound on the memory of the loaded object,
  /// whose residues take up to 5 times the bytes sent. Both are checked before anything is
  /// allocated.
  std::uint64_t max_bytes = std::uint64_t{1} << 32;
  /// The least security of parameters that are read, in bits: 128, 192 or 256, or 0 for any.
  int min_security = 128;
  /// The largest log2 of the probability that one bootstrapping with parameters that are read
  /// fails: that it gives a wrong result, or loses a coefficient. 0: any.
  double max_log2_p_fail = 0;
  /// Whether parameters that were written without the plan of their levels may be searched for it.
  /// A search may take minutes, so allow it only for bytes of your own.
  bool search = false;
};

struct Frame {
  Kind kind;
  ParamsHash params_hash{};
  std::span<const std::uint8_t> payload;
};

/// Checks magic, version, length and checksum. Throws CorruptData, VersionError or LimitExceeded.
/// It takes one pass over the bytes, during which `checkpoint` is called, and allocates nothing.
Frame open_frame(std::span<const std::uint8_t> bytes, const Limits& limits,
                 const Checkpoint& checkpoint = {});
/// Also throws CorruptData if the object is not of the expected kind.
Frame open_frame(std::span<const std::uint8_t> bytes, Kind expected, const Limits& limits,
                 const Checkpoint& checkpoint = {});

/// Checks the magic and the version of a header, and returns the length that it gives for the
/// payload. Throws CorruptData or VersionError.
std::uint64_t payload_bytes(std::span<const std::uint8_t, kHeaderBytes> header);
/// The kind that a header names. Throws CorruptData if it is not the expected one.
Kind checked_kind(std::span<const std::uint8_t> header, Kind expected);
/// What is wrong with bytes that have another checksum than theirs.
inline constexpr const char* kDamaged =
    "cannot read these bytes: the checksum is wrong: they were damaged";

/// Writes the length and the checksum into a frame whose header and payload are in place. bytes is
/// the whole frame, which has at least kFrameBytes.
void seal_frame(std::span<std::uint8_t> bytes, const Checkpoint& checkpoint = {});

}  // namespace jali::wire
