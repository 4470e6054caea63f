// Bytes of every public CKKS object. docs/format.md has the format; secret keys are in wire/secret.h.
//
// Reading is safe on any input: sizes are compared with the bytes at hand and with the limits before
// memory is taken, every number is checked against the parameters, every residue against its prime,
// and nothing may follow the end. Every failure is one jali::Error: CorruptData, VersionError,
// ParamsMismatch (made for other parameters) or LimitExceeded; OutOfMemory if the machine has less than
// the limits allow. Nothing is authenticated: see wire/frame.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/ckks/types.h"
#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/frame.h"

namespace jali::wire {

using Bytes = std::vector<std::uint8_t>;

/// Throws InvalidArgument on objects that no evaluator makes: wrong form, level, batch or parts.
Bytes to_bytes(const params::CkksParams& params);
Bytes to_bytes(const ckks::Plaintext& plaintext);
/// With a seed: half the size. The estimate travels in the clear; it must not be computed from the
/// encrypted data (see params::Estimate).
Bytes to_bytes(const ckks::Ciphertext& ciphertext);
Bytes to_bytes(const rlwe::PublicKey& key);
Bytes to_bytes(const rlwe::SwitchKey& key, const params::CkksParams& params);
/// checkpoint: called between keys.
Bytes to_bytes(const rlwe::EvaluationKeys& keys, const Checkpoint& checkpoint = {});

params::CkksParamsPtr params_from_bytes(std::span<const std::uint8_t> bytes,
                                        const Limits& limits = {});

/// T: ckks::Plaintext, ckks::Ciphertext, rlwe::PublicKey, rlwe::SwitchKey or rlwe::EvaluationKeys.
/// Polynomials come from `ring`, which must be one of `params`.
template <class T>
T from_bytes(std::span<const std::uint8_t> bytes, const params::CkksParamsPtr& params,
             const ring::Ring& ring, const Limits& limits = {});

template <>
ckks::Plaintext from_bytes(std::span<const std::uint8_t> bytes, const params::CkksParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
ckks::Ciphertext from_bytes(std::span<const std::uint8_t> bytes,
                            const params::CkksParamsPtr& params, const ring::Ring& ring,
                            const Limits& limits);
template <>
rlwe::PublicKey from_bytes(std::span<const std::uint8_t> bytes, const params::CkksParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
rlwe::SwitchKey from_bytes(std::span<const std::uint8_t> bytes, const params::CkksParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
rlwe::EvaluationKeys from_bytes(std::span<const std::uint8_t> bytes,
                                const params::CkksParamsPtr& params, const ring::Ring& ring,
                                const Limits& limits);

}  // namespace jali::wire
