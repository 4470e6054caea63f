// Encryption under the public key. Encryption under the secret key is in ckks/secret/encryptor.h.
#pragma once

#include <memory>
#include <optional>

#include "jali/random/secret_seed.h"
#include "jali/rlwe/encryptor.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

// `declared` states the size of the numbers, and estimates and bounds assume it. It travels with
// the ciphertext in the clear. Therefore it is declared beforehand, and never computed from the
// data. encrypt may be called from several threads.

/// Throws InvalidArgument if the largest number is above the declared peak, or if the root mean
/// square of the n slots is above (1 + 4 / sqrt(n)) times the declared magnitude, and RangeExceeded
/// if the plaintext's level does not hold numbers of that size. The message does not say how large
/// the numbers are.
void check_declared(const Plaintext& plaintext, const params::Declared& declared);

/// Encrypts under the public key. rlwe/encryptor.h says how, and what `seed` means. Throws
/// InvalidArgument for numbers above the declared peak, and ParamsMismatch if the plaintext and the
/// key have different parameters.
class PublicEncryptor {
 public:
  PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk, std::shared_ptr<const ring::Ring> ring,
                  const std::optional<random::Seed>& seed = std::nullopt);
  Ciphertext encrypt(const Plaintext& plaintext, const params::Declared& declared = {});

 private:
  rlwe::PublicEncryptor bodies_;
};

}  // namespace jali::ckks
