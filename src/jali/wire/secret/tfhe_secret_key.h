// Bytes of the secret keys of TFHE.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "jali/base/secret_vector.h"
#include "jali/lwe/secret/secret_key.h"
#include "jali/wire/frame.h"
#include "jali/wire/tfhe.h"

namespace jali::wire {

inline constexpr Kind kTfheSecretKey{kTfhe, Object::secret_key};

/// One bit each: the small secret, then the large one, the lowest bit first, without gaps. Bits
/// after the last are 0.
SecretVector<std::uint8_t> secret_to_bytes(const lwe::SecretKey& key);

/// Reads a key into memory that is wiped. Errors are those of wire/tfhe.h. None of them tells
/// anything about the key.
lwe::SecretKey tfhe_secret_from_bytes(std::span<const std::uint8_t> bytes,
                                      const tfhe::ParamsPtr& params, const Limits& limits = {});

/// Writes the key to a file that its owner alone can read (mode 0600); see replace_file.
void save_secret(const std::filesystem::path& path, const lwe::SecretKey& key);
lwe::SecretKey load_tfhe_secret(const std::filesystem::path& path, const tfhe::ParamsPtr& params,
                                const Limits& limits = {});

}  // namespace jali::wire
