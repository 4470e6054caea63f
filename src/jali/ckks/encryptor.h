// Encryption under the public key. That under the secret key is in ckks/secret/encryptor.h.
#pragma once

#include <memory>
#include <optional>

#include "jali/ckks/types.h"
#include "jali/random/secret_seed.h"
#include "jali/rlwe/keys.h"

namespace jali::ckks {

// What is declared of the numbers is what estimates and bounds assume. It travels with the ciphertext in the clear, so it
// is declared beforehand and never computed from the data. encrypt may be called from several threads.

/// Throws InvalidArgument if the largest number is above the declared peak. Says nothing of its size.
void check_declared(double largest, const params::Declared& declared);

// seed: empty, so that every encryption draws its randomness from the operating system and keeps nothing of it;
// a given one makes encryptions reproducible, for tests. A process that was forked then repeats them, and
// two messages under one seed are open to everybody (random::SeedSource).

/// Encrypts under the public key.
class PublicEncryptor {
 public:
  PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk, std::shared_ptr<const ring::Ring> ring,
                  const std::optional<random::Seed>& seed = std::nullopt);
  Ciphertext encrypt(const Plaintext& plaintext, const params::Declared& declared = {});

 private:
  std::shared_ptr<const rlwe::PublicKey> pk_;
  std::shared_ptr<const ring::Ring> ring_;
  ring::Poly a_;
  random::SeedSource seeds_;
};

}  // namespace jali::ckks
