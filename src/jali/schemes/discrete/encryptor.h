// Encryption under the public key. Encryption under the secret key is in
// schemes/discrete/secret/encryptor.h.
#pragma once

#include <memory>
#include <optional>

#include "jali/random/secret_seed.h"
#include "jali/rlwe/encryptor.h"
#include "jali/schemes/discrete/encoder.h"

namespace jali::discrete {

/// Throws ParamsMismatch unless a plaintext and a key have the same parameters.
void check_same(const Plaintext& plaintext, const rlwe::Params& key);

/// What a plaintext of `encoder` becomes at a level, before it is encrypted.
rlwe::Plaintext for_encryption(const Encoder& encoder, const Plaintext& plaintext, int level);

/// The encryption of a plaintext: this body, with the level's factor and this noise.
Ciphertext with_metadata(rlwe::Ciphertext body, const Plaintext& plaintext,
                         const Estimate& estimate);

/// Encrypts under the public key. rlwe/encryptor.h says how, and what `seed` means. May be called
/// from several threads. Throws ParamsMismatch if the plaintext and the key have different
/// parameters.
class PublicEncryptor {
 public:
  PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk, std::shared_ptr<const ring::Ring> ring,
                  ParamsPtr params, const std::optional<random::Seed>& seed = std::nullopt);
  /// level: -1 for the highest. A lower one makes a smaller ciphertext for fewer products.
  Ciphertext encrypt(const Plaintext& plaintext, int level = -1);

 private:
  rlwe::PublicEncryptor bodies_;
  Encoder encoder_;
  ParamsPtr params_;
};

}  // namespace jali::discrete
