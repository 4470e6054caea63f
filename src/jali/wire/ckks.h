// Bytes of CKKS parameters, plaintexts and ciphertexts. docs/format.md defines the format.
// wire/keys.h has the keys, and says what reading guarantees.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <span>

#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"
#include "jali/schemes/ckks/types.h"
#include "jali/wire/file.h"
#include "jali/wire/frame.h"
#include "jali/wire/keys.h"

namespace jali::wire {

inline constexpr Scheme kCkks{2};
inline constexpr Kind kCkksParams{kCkks, Object::params};
inline constexpr Kind kCkksPlaintext{kCkks, Object::plaintext};
inline constexpr Kind kCkksCiphertext{kCkks, Object::ciphertext};

/// Throws InvalidArgument if the form, level, batch or number of parts is one that no evaluator
/// makes.
Bytes to_bytes(const ckks::Params& params);
Bytes to_bytes(const ckks::Plaintext& plaintext);
/// A ciphertext that has its seed takes half the bytes. The estimate travels in the clear, so it
/// must not be computed from the encrypted data (see params::Estimate).
Bytes to_bytes(const ckks::Ciphertext& ciphertext);

/// The work is bounded before it starts, unless limits.search allows a search. Throws CorruptData,
/// VersionError or LimitExceeded as in wire/keys.h, InsecureParams below limits.min_security, and
/// ParamsMismatch if this build makes other moduli than the one that wrote the bytes.
ckks::ParamsPtr params_from_bytes(std::span<const std::uint8_t> bytes, const Limits& limits = {});

template <class T>
concept CkksText = std::same_as<T, ckks::Plaintext> || std::same_as<T, ckks::Ciphertext>;

/// T: ckks::Plaintext or ckks::Ciphertext. Its polynomials lie in the memory of `ring`, which must
/// be made from `params`. Errors are those of wire/keys.h.
template <CkksText T>
T from_bytes(std::span<const std::uint8_t> bytes, const ckks::ParamsPtr& params,
             const ring::Ring& ring, const Limits& limits = {});

template <>
ckks::Plaintext from_bytes(std::span<const std::uint8_t> bytes, const ckks::ParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
ckks::Ciphertext from_bytes(std::span<const std::uint8_t> bytes, const ckks::ParamsPtr& params,
                            const ring::Ring& ring, const Limits& limits);

/// Writes what to_bytes gives to a file, which is replaced at once; see wire/file.h.
inline void save(const std::filesystem::path& path, const ckks::Params& params) {
  save_bytes(path, to_bytes(params));
}
template <CkksText T>
void save(const std::filesystem::path& path, const T& text) {
  save_bytes(path, to_bytes(text));
}
/// Reads what `save` wrote. Errors are FileError and those of from_bytes.
inline ckks::ParamsPtr load_params(const std::filesystem::path& path, const Limits& limits = {}) {
  return params_from_bytes(load_bytes(path, limits), limits);
}
template <CkksText T>
T load(const std::filesystem::path& path, const ckks::ParamsPtr& params, const ring::Ring& ring,
       const Limits& limits = {}) {
  return from_bytes<T>(load_bytes(path, limits), params, ring, limits);
}

}  // namespace jali::wire
