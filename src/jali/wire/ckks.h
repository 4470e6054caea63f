// Bytes of CKKS parameters, plaintexts and ciphertexts. docs/format.md has the format; wire/keys.h has keys, and what
// reading promises.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "jali/ckks/types.h"
#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"
#include "jali/wire/frame.h"
#include "jali/wire/keys.h"

namespace jali::wire {

inline constexpr Scheme kCkks{2};
inline constexpr Kind kCkksParams{kCkks, Object::params};
inline constexpr Kind kCkksPlaintext{kCkks, Object::plaintext};
inline constexpr Kind kCkksCiphertext{kCkks, Object::ciphertext};

/// Throws InvalidArgument on objects that no evaluator makes: wrong form, level, batch or parts.
Bytes to_bytes(const ckks::Params& params);
Bytes to_bytes(const ckks::Plaintext& plaintext);
/// With a seed: half the size. The estimate travels in the clear; it must not be computed from the
/// encrypted data (see params::Estimate).
Bytes to_bytes(const ckks::Ciphertext& ciphertext);

ckks::ParamsPtr params_from_bytes(std::span<const std::uint8_t> bytes, const Limits& limits = {});

template <class T>
concept CkksText = std::same_as<T, ckks::Plaintext> || std::same_as<T, ckks::Ciphertext>;

/// T: ckks::Plaintext or ckks::Ciphertext.
/// Polynomials come from `ring`, which must be one of `params`.
template <CkksText T>
T from_bytes(std::span<const std::uint8_t> bytes, const ckks::ParamsPtr& params,
             const ring::Ring& ring, const Limits& limits = {});

template <>
ckks::Plaintext from_bytes(std::span<const std::uint8_t> bytes, const ckks::ParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
ckks::Ciphertext from_bytes(std::span<const std::uint8_t> bytes, const ckks::ParamsPtr& params,
                            const ring::Ring& ring, const Limits& limits);

}  // namespace jali::wire
