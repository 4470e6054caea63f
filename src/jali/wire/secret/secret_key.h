// Bytes of secret keys. They have a library of their own, jali_wire_secret, which servers do not
// link.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "jali/base/secret_vector.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/wire/frame.h"

namespace jali::wire {

inline constexpr Kind kSecretKey{Scheme::rlwe, Object::secret_key};

/// Bytes that are wiped when they are destroyed. The caller has to protect copies in other
/// containers.
using SecretBytes = SecretVector<std::uint8_t>;

/// A coefficient takes two bits. Throws InvalidArgument if the key is not ternary.
SecretBytes secret_to_bytes(const rlwe::SecretKey& key, const ring::Ring& ring);

/// Reads a key into memory that is wiped. Errors are those of wire/keys.h. None of them tells
/// anything about the key.
rlwe::SecretKey secret_from_bytes(std::span<const std::uint8_t> bytes,
                                  const rlwe::ParamsPtr& params, const ring::Ring& ring,
                                  const Limits& limits = {});

/// Writes the key to a file that its owner alone can read (mode 0600); see replace_file.
void save_secret(const std::filesystem::path& path, const rlwe::SecretKey& key,
                 const ring::Ring& ring);

/// Reads the key from a file that save_secret wrote. Errors are FileError and those of
/// secret_from_bytes.
rlwe::SecretKey load_secret(const std::filesystem::path& path, const rlwe::ParamsPtr& params,
                            const ring::Ring& ring, const Limits& limits = {});

}  // namespace jali::wire
