// What client and server of a compiled program send each other: the ciphertexts of some examples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/base/hash.h"
#include "jali/client/manifest.h"
#include "jali/ring/poly.h"
#include "jali/schemes/ckks/types.h"
#include "jali/wire/frame.h"

namespace jali::client {

inline constexpr wire::Kind kMessage{wire::kCkks, wire::Object::message};

/// The most bytes of a message unless more is allowed.
inline constexpr std::uint64_t kMostMessageBytes = std::uint64_t{1} << 31;

using CiphertextPtr = std::shared_ptr<const ckks::Ciphertext>;

/// Which side sent a message.
enum class Direction : std::uint8_t { request, reply };

/// Encrypted inputs or outputs.
struct Message {
  Digest program{};             // the fingerprint of the manifest
  std::uint64_t examples = 1;   // how many there are
  bool single = false;          // whether the batch's axis is left out at decryption
  Direction direction = Direction::request;
  std::vector<std::vector<CiphertextPtr>> arrays;  // of each input or output
};

/// Throws InvalidArgument unless the message comes from this side, belongs to the program, and has
/// the ciphertexts of its ports and as many examples as it says.
void check(const Message& message, const Manifest& manifest, const Digest& fingerprint,
           Direction direction);

/// Bytes for transport. They are not authenticated. Throws InvalidArgument without a ciphertext,
/// and what to_bytes of one throws.
wire::Bytes to_bytes(const Message& message);
/// What to_bytes wrote. Throws CorruptData, VersionError, LimitExceeded, ParamsMismatch, and what
/// check() throws. limits.max_bytes bounds the bytes, and five times as much the memory of the
/// ciphertexts.
Message message_from_bytes(std::span<const std::uint8_t> bytes, const Manifest& manifest,
                           const Digest& fingerprint, Direction direction, const ring::Ring& ring,
                           const wire::Limits& limits = {kMostMessageBytes});

}  // namespace jali::client
