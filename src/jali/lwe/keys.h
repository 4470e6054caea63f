// The keys that an evaluator is given, which are public, and how an engine takes them. Keys that
// hold the secret are in lwe/secret/.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "jali/backend/tfhe_ops.h"
#include "jali/base/checkpoint.h"
#include "jali/base/key_id.h"
#include "jali/base/progress.h"
#include "jali/device/buffer.h"
#include "jali/lwe/blocks.h"
#include "jali/params/tfhe_params.h"

namespace jali::lwe {

using Params = tfhe::Params;
using ParamsPtr = tfhe::ParamsPtr;

/// All keys of an evaluator, with their masks as seeds, in host memory.
struct EvaluationKeys {
  ParamsPtr params;
  KeyId key_id;
  /// The bootstrapping key: GGSW ciphertexts of the units of every step, in the order of
  /// backend::Rotation.
  SeededGgsw rotation;
  /// The key-switching key from the large secret S to the small one: row (i, j) has the phase S_i
  /// 2^(32 - j base_log).
  SeededLwe switching;
  /// The packing key-switching key, from the secret s of the ciphertexts that users hold to GLWE,
  /// with the gadget of the rotation: ciphertext (i, j) has the phase s_i 2^(w - j base_log) in its
  /// coefficient 0.
  std::optional<SeededGlwe> packing;

  std::size_t bytes() const;
};

/// The compact public key, with which whoever has it encrypts for the holder of the secret key: k
/// GLWE encryptions of 0 under the large key, with their masks as a seed, in host memory.
struct PublicKey {
  ParamsPtr params;
  SeededGlwe zeros;

  const KeyId& key_id() const { return zeros.key_id; }
  std::size_t bytes() const { return zeros.bytes(); }
};

/// The keys in an engine's form and memory.
struct PreparedKeys {
  device::Buffer rotation, switching;
  device::Buffer packing;  // empty if there is no packing key
  KeyId key_id{};
};

/// Gives the keys to the engine, a part at a time, so that the expanded bootstrapping key never
/// lies in host memory as a whole. Throws ParamsMismatch if the keys or the engine were made for
/// other parameters.
PreparedKeys prepare(const backend::TfheOps& engine, const EvaluationKeys& keys,
                     const Progress& progress = {}, const Checkpoint& checkpoint = {});

/// Throws ParamsMismatch unless the keys have the sizes that their parameters ask for.
void check_sizes(const EvaluationKeys& keys);
void check_sizes(const PublicKey& key);
/// Whether an engine computes with these parameters.
bool fits(const backend::TfheConfig& config, const Params& params);

}  // namespace jali::lwe
