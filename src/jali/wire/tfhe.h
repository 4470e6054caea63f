// Bytes of TFHE parameters, ciphertexts and evaluation keys. docs/format.md defines the format;
// wire/keys.h says what reading guarantees. Those of secret keys are in
// wire/secret/tfhe_secret_key.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "jali/base/checkpoint.h"
#include "jali/lwe/keys.h"
#include "jali/params/tfhe_params.h"
#include "jali/schemes/tfhe/ciphertext.h"
#include "jali/schemes/tfhe/compact.h"
#include "jali/wire/file.h"
#include "jali/wire/frame.h"
#include "jali/wire/stream.h"

namespace jali::wire {

inline constexpr Scheme kTfhe{3};
inline constexpr Kind kTfheParams{kTfhe, Object::params};
inline constexpr Kind kTfheCiphertext{kTfhe, Object::ciphertext};
inline constexpr Kind kTfhePublicKey{kTfhe, Object::public_key};
/// A kind of object that no other scheme has.
inline constexpr Kind kTfheCompactCiphertext{kTfhe, Object{7}};
inline constexpr Kind kTfheEvaluationKeys{kTfhe, Object::evaluation_keys};

Bytes to_bytes(const tfhe::Params& params);
/// A ciphertext that has its seed takes one word for each element. Words of masks are uniform, so
/// that all their bits are written. Throws InvalidArgument if the ciphertext is in a device's
/// memory, or has a shape or a noise that no evaluator makes.
Bytes to_bytes(const tfhe::Ciphertext& ciphertext);
Bytes to_bytes(const tfhe::CompactCiphertext& ciphertext);
Bytes to_bytes(const lwe::PublicKey& key);
Bytes to_bytes(const lwe::EvaluationKeys& keys, const Checkpoint& checkpoint = {});
/// How many bytes to_bytes gives.
std::size_t sent_bytes(const lwe::EvaluationKeys& keys);
/// Gives the bytes of to_bytes to a sink. They never lie in memory together.
void write(const lwe::EvaluationKeys& keys, const Sink& sink, const Progress& progress = {},
           const Checkpoint& checkpoint = {});

// All throw CorruptData, VersionError, LimitExceeded or ParamsMismatch as in wire/keys.h.

/// Throws InsecureParams below limits.min_security.
tfhe::ParamsPtr tfhe_params_from_bytes(std::span<const std::uint8_t> bytes,
                                       const Limits& limits = {});
/// In host memory. What was read counts as a new ciphertext of the noise that its bytes state;
/// reading the same bytes twice gives two whose errors are taken to be independent.
tfhe::Ciphertext tfhe_ciphertext_from_bytes(std::span<const std::uint8_t> bytes,
                                            const tfhe::ParamsPtr& params,
                                            const Limits& limits = {});
/// In host memory.
tfhe::CompactCiphertext tfhe_compact_from_bytes(std::span<const std::uint8_t> bytes,
                                                const tfhe::ParamsPtr& params,
                                                const Limits& limits = {});
/// Also throws CorruptData for a key that hides nothing: with a polynomial that is constant or
/// small.
lwe::PublicKey tfhe_public_key_from_bytes(std::span<const std::uint8_t> bytes,
                                          const tfhe::ParamsPtr& params, const Limits& limits = {});
lwe::EvaluationKeys tfhe_keys_from_bytes(std::span<const std::uint8_t> bytes,
                                         const tfhe::ParamsPtr& params, const Limits& limits = {});
/// Reads keys from a source whose bytes never lie in memory together. It takes no byte after the
/// object.
lwe::EvaluationKeys read_tfhe_keys(const Source& source, const tfhe::ParamsPtr& params,
                                   const Limits& limits = {}, const Progress& progress = {});

/// Files with these bytes, which are replaced at once; see wire/file.h.
inline void save(const std::filesystem::path& path, const tfhe::Params& params) {
  save_bytes(path, to_bytes(params));
}
inline void save(const std::filesystem::path& path, const tfhe::Ciphertext& ciphertext) {
  save_bytes(path, to_bytes(ciphertext));
}
inline void save(const std::filesystem::path& path, const tfhe::CompactCiphertext& ciphertext) {
  save_bytes(path, to_bytes(ciphertext));
}
inline void save(const std::filesystem::path& path, const lwe::PublicKey& key) {
  save_bytes(path, to_bytes(key));
}
void save(const std::filesystem::path& path, const lwe::EvaluationKeys& keys,
          const Progress& progress = {});
inline tfhe::ParamsPtr load_tfhe_params(const std::filesystem::path& path,
                                        const Limits& limits = {}) {
  return tfhe_params_from_bytes(load_bytes(path, limits), limits);
}
inline tfhe::Ciphertext load_tfhe_ciphertext(const std::filesystem::path& path,
                                             const tfhe::ParamsPtr& params,
                                             const Limits& limits = {}) {
  return tfhe_ciphertext_from_bytes(load_bytes(path, limits), params, limits);
}
inline tfhe::CompactCiphertext load_tfhe_compact(const std::filesystem::path& path,
                                                 const tfhe::ParamsPtr& params,
                                                 const Limits& limits = {}) {
  return tfhe_compact_from_bytes(load_bytes(path, limits), params, limits);
}
inline lwe::PublicKey load_tfhe_public_key(const std::filesystem::path& path,
                                           const tfhe::ParamsPtr& params,
                                           const Limits& limits = {}) {
  return tfhe_public_key_from_bytes(load_bytes(path, limits), params, limits);
}
inline lwe::EvaluationKeys load_tfhe_keys(const std::filesystem::path& path,
                                          const tfhe::ParamsPtr& params, const Limits& limits = {},
                                          const Progress& progress = {}) {
  return read_file(
      path, [&](const Source& source) { return read_tfhe_keys(source, params, limits, progress); });
}

}  // namespace jali::wire
