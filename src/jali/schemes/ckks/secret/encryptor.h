// Encryption under the secret key.
#pragma once

#include <memory>
#include <optional>

#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/secret/encryptor.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/encryptor.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// Encrypts under the secret key, which rlwe/secret/encryptor.h describes. ckks/encryptor.h says
/// what `declared` means, and what it throws.
class SecretEncryptor {
 public:
  SecretEncryptor(std::shared_ptr<const rlwe::SecretKey> sk, std::shared_ptr<const ring::Ring> ring,
                  const std::optional<random::Seed>& seed = std::nullopt);
  Ciphertext encrypt(const Plaintext& plaintext, const params::Declared& declared = {});

 private:
  rlwe::SecretEncryptor bodies_;
};

}  // namespace jali::ckks
