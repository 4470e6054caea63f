// Encryption under the secret key.
#pragma once

#include <memory>
#include <optional>

#include "jali/random/secret_seed.h"
#include "jali/rlwe/secret/encryptor.h"
#include "jali/schemes/discrete/encryptor.h"

namespace jali::discrete {

/// Encrypts under the secret key, which rlwe/secret/encryptor.h describes.
/// schemes/discrete/encryptor.h says the rest.
class SecretEncryptor {
 public:
  SecretEncryptor(std::shared_ptr<const rlwe::SecretKey> sk, std::shared_ptr<const ring::Ring> ring,
                  ParamsPtr params, const std::optional<random::Seed>& seed = std::nullopt);
  Ciphertext encrypt(const Plaintext& plaintext, int level = -1);

 private:
  rlwe::SecretEncryptor bodies_;
  Encoder encoder_;
  ParamsPtr params_;
};

}  // namespace jali::discrete
