// Bytes of public keys. Those of secret keys are in wire/secret/secret_key.h. docs/format.md
// defines the format.
//
// Reading is safe for any input. Sizes are compared with the bytes at hand and with the limits
// before memory is taken. Every number is checked against the parameters and every residue against
// its prime, and nothing may follow the end. Every failure is one jali::Error: CorruptData,
// VersionError, LimitExceeded, ParamsMismatch if the object was made for other parameters, or
// OutOfMemory if the machine has less memory than the limits allow. Nothing is authenticated: see
// wire/frame.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "jali/base/checkpoint.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/frame.h"
#include "jali/wire/stream.h"

namespace jali::wire {

inline constexpr Kind kPublicKey{Scheme::rlwe, Object::public_key};
inline constexpr Kind kSwitchKey{Scheme::rlwe, Object::switch_key};
inline constexpr Kind kEvaluationKeys{Scheme::rlwe, Object::evaluation_keys};

/// Throws InvalidArgument if the form, level, batch or number of digits is one that no key
/// generator makes, or if the key is in a device's memory.
Bytes to_bytes(const rlwe::PublicKey& key);
Bytes to_bytes(const rlwe::SwitchKey& key, const rlwe::Params& params);
/// checkpoint: called between keys.
Bytes to_bytes(const rlwe::EvaluationKeys& keys, const Checkpoint& checkpoint = {});
/// How many bytes to_bytes gives, for keys and for those of a demand before they are made.
std::uint64_t sent_bytes(const rlwe::EvaluationKeys& keys);
std::uint64_t sent_bytes(const rlwe::Params& params, const rlwe::KeyDemand& demand);
/// Gives the bytes of to_bytes to a sink. They never lie in memory together.
void write(const rlwe::EvaluationKeys& keys, const Sink& sink, const Progress& progress = {},
           const Checkpoint& checkpoint = {});

template <class T>
concept PublicKeys = std::same_as<T, rlwe::PublicKey> || std::same_as<T, rlwe::SwitchKey> ||
                     std::same_as<T, rlwe::EvaluationKeys>;

/// T: rlwe::PublicKey, rlwe::SwitchKey or rlwe::EvaluationKeys. Its polynomials lie in the memory
/// of `ring`, which must be made from `params`.
template <PublicKeys T>
T from_bytes(std::span<const std::uint8_t> bytes, const rlwe::ParamsPtr& params,
             const ring::Ring& ring, const Limits& limits = {});

template <>
rlwe::PublicKey from_bytes(std::span<const std::uint8_t> bytes, const rlwe::ParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
rlwe::SwitchKey from_bytes(std::span<const std::uint8_t> bytes, const rlwe::ParamsPtr& params,
                           const ring::Ring& ring, const Limits& limits);
template <>
rlwe::EvaluationKeys from_bytes(std::span<const std::uint8_t> bytes, const rlwe::ParamsPtr& params,
                                const ring::Ring& ring, const Limits& limits);

/// Reads keys from a source whose bytes never lie in memory together. It takes no byte after the
/// object. Errors are those of from_bytes. Damage shows as soon as a number is out of range, else
/// in the checksum at the end.
rlwe::EvaluationKeys read_keys(const Source& source, const rlwe::ParamsPtr& params,
                               const ring::Ring& ring, const Limits& limits = {},
                               const Progress& progress = {});

/// What a set of keys is for.
struct CheckedKeys {
  rlwe::KeyId key_id;  // of the secret to which they belong
  rlwe::KeyDemand demand;  // which keys there are, each with its highest level; -1: every level
};

/// Reads keys as read_keys does and refuses what it refuses, but keeps none of them: one lies in
/// memory at a time. For those who pass keys on or store them. limits.max_bytes bounds the bytes,
/// and the memory of one key.
CheckedKeys check_keys(const Source& source, const rlwe::Params& params, const ring::Ring& ring,
                       const Limits& limits = {}, const Progress& progress = {});

}  // namespace jali::wire
