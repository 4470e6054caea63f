// Encryption of polynomials under the secret key.
#pragma once

#include <memory>
#include <optional>

#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/ciphertext.h"
#include "jali/rlwe/secret/secret_key.h"

namespace jali::rlwe {

/// Encrypts under the secret key: (m + e - a s, a). The ciphertext takes half the bytes of one
/// under the public key, because a seed stands for its uniform part a. rlwe/encryptor.h says what
/// `seed` means.
class SecretEncryptor {
 public:
  SecretEncryptor(std::shared_ptr<const SecretKey> sk, std::shared_ptr<const ring::Ring> ring,
                  const std::optional<random::Seed>& seed = std::nullopt);

  const SecretKey& key() const { return *sk_; }
  Ciphertext encrypt(const Plaintext& plaintext);

 private:
  std::shared_ptr<const SecretKey> sk_;
  std::shared_ptr<const ring::Ring> ring_;
  random::SeedSource seeds_;
};

}  // namespace jali::rlwe
