// Encryption under the public key. Encryption under the secret key is in tfhe/secret/client.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jali/backend/secret/small_product.h"
#include "jali/base/thread_pool.h"
#include "jali/lwe/keys.h"
#include "jali/random/secret_seed.h"
#include "jali/schemes/tfhe/compact.h"

namespace jali::tfhe {

/// Encrypts for the holder of the secret key (M. Joye, TFHE Public-Key Encryption Revisited, 2024,
/// over modules).
///
/// The public key is B_i = sum_j A_ij S_j + E_i, i = 0 .. k - 1. A ciphertext of the polynomial M
/// is
///   U_j = sum_i A_ij R_i + E'_j,  V = sum_i B_i R_i + E'' + M,
/// whose phase V - sum_j U_j S_j is M + sum_i E_i R_i + E'' - sum_j E'_j S_j. Coefficients of R are
/// differences of two random bits. So U and V are as hard to tell from random words as GLWE
/// ciphertexts under a binary secret of k N bits: from those, whoever draws the second bit gets
/// these. Their mean is 0, so that errors of different encryptions are independent under one key.
/// Errors are TUniform(glwe_noise_bits).
///
/// Everything that is drawn or computed from a message is wiped, and no branch or address depends
/// on it. It may be used from several threads.
class PublicEncryptor {
 public:
  /// seed: makes everything reproducible, for tests only: two messages of the same randomness can
  /// be read by everybody. Throws InvalidArgument or ParamsMismatch for a key that does not fit its
  /// parameters.
  explicit PublicEncryptor(std::shared_ptr<const lwe::PublicKey> key, int threads = 1,
                           const std::optional<random::Seed>& seed = std::nullopt);

  const ParamsPtr& params() const { return key_->params; }
  const KeyId& key_id() const { return key_->key_id(); }

  /// largest: as in Client::encrypt. Throws InvalidArgument if a value is above it.
  CompactCiphertext encrypt(std::span<const std::uint64_t> values,
                            std::optional<std::uint64_t> largest = std::nullopt);

 private:
  /// Polynomial `which` of the ciphertexts of one seed, with these messages in its first
  /// coefficients.
  template <class Word>
  void encrypt_polynomial(Word* out, std::span<const std::uint64_t> messages,
                          const random::SecretSeed& seed, std::uint64_t which) const;

  std::shared_ptr<const lwe::PublicKey> key_;
  std::size_t each_ = 0;  // messages of a polynomial
  backend::SmallRing ring_;
  std::vector<std::uint64_t> rows_;  // A_0j, .., A_{k-1,j} for every j, then B_0, .., B_{k-1}
  random::SeedSource seeds_;
  mutable ThreadPool threads_;
};

}  // namespace jali::tfhe
