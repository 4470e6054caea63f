// The holder of the secret key: makes keys, encrypts and decrypts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jali/base/checkpoint.h"
#include "jali/base/progress.h"
#include "jali/base/secret_vector.h"
#include "jali/lwe/keys.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/lwe/secret/secret_key.h"
#include "jali/schemes/tfhe/ciphertext.h"
#include "jali/schemes/tfhe/compact.h"

namespace jali::tfhe {

enum class Check : std::uint8_t { no, yes };

class Client {
 public:
  /// Makes a secret key. engine: of params.config(), on the device where keys are made, and where
  /// this encrypts and decrypts. seed: makes everything reproducible, for tests
  /// (lwe::KeyGenerator).
  Client(ParamsPtr params, std::shared_ptr<const backend::TfheClientOps> engine,
         const std::optional<random::Seed>& seed = std::nullopt);
  /// Takes a secret key that was made before.
  Client(std::shared_ptr<const lwe::SecretKey> secret,
         std::shared_ptr<const backend::TfheClientOps> engine,
         const std::optional<random::Seed>& seed = std::nullopt);
  /// The same on the CPU.
  explicit Client(const ParamsPtr& params, int threads = 1,
                  const std::optional<random::Seed>& seed = std::nullopt);
  explicit Client(std::shared_ptr<const lwe::SecretKey> secret, int threads = 1,
                  const std::optional<random::Seed>& seed = std::nullopt);

  const ParamsPtr& params() const { return secret_->params(); }
  const KeyId& key_id() const { return secret_->id(); }
  const lwe::SecretKey& secret_key() const { return *secret_; }
  const backend::TfheClientOps& engine() const { return *generator_.engine(); }
  lwe::EvaluationKeys evaluation_keys(bool packing = false, const Progress& progress = {},
                                      const Checkpoint& checkpoint = {});

  /// For those who encrypt and do not decrypt (PublicEncryptor).
  lwe::PublicKey public_key();

  /// In host memory. largest: a public bound on the values, of less than value_modulus(), which
  /// becomes their degree; empty for 2^message_bits - 1. Throws InvalidArgument if a value is above
  /// it.
  Ciphertext encrypt(std::span<const std::uint64_t> values,
                     std::optional<std::uint64_t> largest = std::nullopt);

  /// The values, with their carries: 0 to value_modulus() - 1. The ciphertext is in host memory or
  /// in that of the engine's device. The values are the caller's to wipe (base/wipe.h). If this
  /// throws, nothing of them is left.
  ///
  /// Throws ParamsMismatch or KeyMismatch if the ciphertext belongs to other parameters or to
  /// another client. Check::yes also throws WrongDecryption if a phase is farther from a multiple
  /// of the step than T, or a value is above its degree. T is 13.2 standard deviations of the noise
  /// that the ciphertext's history counts, and at most step / 2, so that an honest result is
  /// refused with a probability below 2^-128, or below 2^log2_p_fail if that is larger. A random
  /// phase passes with the probability 2 T / step (degree + 1) / (2 value_modulus()). Without the
  /// check a value is what the phase rounds to, modulo value_modulus().
  std::vector<std::uint64_t> decrypt(const Ciphertext& ciphertext, Check check = Check::yes) const;
  /// The same of what a PublicEncryptor made. T is 13.2 standard deviations of twice the variance
  /// of such encryptions, because the public key's own errors and the weight of the secret are
  /// those of one key.
  std::vector<std::uint64_t> decrypt(const CompactCiphertext& ciphertext,
                                     Check check = Check::yes) const;
  /// The errors of the phases, in units of the step: at most 1/2. For measurements of noise. They
  /// are as secret as the key, which follows from them and the ciphertexts by solving linear
  /// equations, and the caller's to wipe.
  std::vector<double> errors(const Ciphertext& ciphertext) const;
  std::vector<double> errors(const CompactCiphertext& ciphertext) const;

 private:
  SecretVector<std::uint64_t> phases(const Ciphertext& ciphertext) const;
  SecretVector<std::uint64_t> phases(const CompactCiphertext& ciphertext) const;
  SecretVector<std::uint64_t> phases(const lwe::LweBlock& rows,
                                     std::span<const std::uint8_t> secret) const;
  /// Throws KeyMismatch or ParamsMismatch for what belongs to another client.
  void check_owner(const ParamsPtr& params, const KeyId& key_id) const;

  std::shared_ptr<const lwe::SecretKey> secret_;
  lwe::KeyGenerator generator_;
  random::SeedSource seeds_;
  std::shared_ptr<device::Pool> pool_;
};

}  // namespace jali::tfhe
