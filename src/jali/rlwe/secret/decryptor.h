// Decryption to polynomials.
#pragma once

#include <memory>

#include "jali/ring/poly.h"
#include "jali/rlwe/ciphertext.h"
#include "jali/rlwe/secret/secret_key.h"

namespace jali::rlwe {

class Decryptor {
 public:
  Decryptor(std::shared_ptr<const SecretKey> sk, std::shared_ptr<const ring::Ring> ring);

  const SecretKey& key() const { return *sk_; }
  /// The phase c0 + c1 s (+ c2 s^2). It is for the key holder alone, because its error depends on
  /// the key. Throws KeyMismatch if the ciphertext names another key; ciphertexts that name none
  /// are decrypted with any. Throws InvalidArgument unless it has 2 or 3 parts.
  Plaintext decrypt(const Ciphertext& ciphertext) const;

 private:
  std::shared_ptr<const SecretKey> sk_;
  std::shared_ptr<const ring::Ring> ring_;
};

}  // namespace jali::rlwe
