// Decryption.
#pragma once

#include <memory>

#include "jali/ring/poly.h"
#include "jali/rlwe/secret/decryptor.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

class Decryptor {
 public:
  Decryptor(std::shared_ptr<const rlwe::SecretKey> sk, std::shared_ptr<const ring::Ring> ring);
  /// The raw decryption. It is for the key holder alone, because its error depends on the key (Li
  /// and Micciancio 2021). Throws ParamsMismatch if the ciphertext and the key have different
  /// parameters, and KeyMismatch if the ciphertext names another key. Ciphertexts that name no key
  /// are decrypted with any.
  Plaintext decrypt(const Ciphertext& ciphertext) const;

 private:
  rlwe::Decryptor bodies_;
};

}  // namespace jali::ckks
