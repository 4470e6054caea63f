// Encryption and decryption.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "jali/ckks/types.h"
#include "jali/rlwe/keys.h"

namespace jali::ckks {

// magnitude: the root mean square of the slots that the noise estimate shall assume. It travels with
// the ciphertext in the clear, so it is declared beforehand and never computed from the data.

/// Throws InvalidArgument if the parameters bootstrap and the largest number is above kPeak times the declared
/// magnitude. Says nothing of its size.
void check_declared(const params::CkksParams& params, double largest, double magnitude);

// encrypt may be called from several threads; it holds the slots' root mean square to check_declared.

/// Encrypts under the secret key (half the bytes: the uniform part travels as a seed).
class SecretEncryptor {
 public:
  SecretEncryptor(std::shared_ptr<const rlwe::SecretKey> sk, std::shared_ptr<const ring::Ring> ring,
                  std::optional<random::Seed> seed = std::nullopt);
  Ciphertext encrypt(const Plaintext& plaintext, double magnitude = 1);

 private:
  std::shared_ptr<const rlwe::SecretKey> sk_;
  std::shared_ptr<const ring::Ring> ring_;
  random::Prng seeds_;
  std::mutex mutex_;  // of seeds_
};

/// Encrypts under the public key.
class PublicEncryptor {
 public:
  PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk, std::shared_ptr<const ring::Ring> ring,
                  std::optional<random::Seed> seed = std::nullopt);
  Ciphertext encrypt(const Plaintext& plaintext, double magnitude = 1);

 private:
  std::shared_ptr<const rlwe::PublicKey> pk_;
  std::shared_ptr<const ring::Ring> ring_;
  ring::Poly a_;
  random::Prng seeds_;
  std::mutex mutex_;  // of seeds_
};

class Decryptor {
 public:
  Decryptor(std::shared_ptr<const rlwe::SecretKey> sk, std::shared_ptr<const ring::Ring> ring);
  /// The raw decryption: for the key holder alone (Li and Micciancio 2021).
  Plaintext decrypt(const Ciphertext& ciphertext) const;

 private:
  std::shared_ptr<const rlwe::SecretKey> sk_;
  std::shared_ptr<const ring::Ring> ring_;
};

}  // namespace jali::ckks
