// Decryption, compared with what the ciphertext says of its noise and its numbers.
#pragma once

#include <cstdint>
#include <memory>

#include "jali/base/secret_vector.h"
#include "jali/rlwe/secret/decryptor.h"
#include "jali/schemes/discrete/encoder.h"

namespace jali::discrete {

enum class Check : std::uint8_t { no, yes };

class Decryptor {
 public:
  /// ring: on the host.
  Decryptor(std::shared_ptr<const rlwe::SecretKey> sk, std::shared_ptr<const ring::Ring> ring,
            ParamsPtr params);

  /// (batch, N) numbers, each the one of the ciphertext's range that its residue modulo T stands
  /// for.
  ///
  /// Throws ParamsMismatch if the ciphertext and the key have different parameters, KeyMismatch if
  /// the ciphertext names another key; ciphertexts that name no key are decrypted with any. With
  /// Check::yes it throws
  /// - DepthExhausted before anything is decrypted, if the ciphertext says itself that its noise
  /// may
  ///   be more than its level holds;
  /// - WrongDecryption if a coefficient of the noise is above the ciphertext's bound, or a number
  ///   outside its range. Honest results are refused with probability at most 2^-128. The phase
  ///   under a wrong key is uniform modulo Q, and passes with probability 2^(-b N), where b is the
  ///   ciphertext's budget in bits (NoiseModel::budget).
  /// What the comparison tells, and to whom: docs/security.md.
  SecretVector<std::int64_t> decrypt(const Ciphertext& ciphertext, Check check = Check::yes) const;

  /// The largest coefficient of the noise eps, and its largest slot: what the bounds of Estimate
  /// are about. For tests and for the key holder alone, because it depends on the key.
  struct Noise {
    double coefficient = 0, slot = 0;
  };
  Noise measure(const Ciphertext& ciphertext) const;

 private:
  void check_origin(const Ciphertext& ciphertext) const;
  /// T times the phase modulo Q, in coefficient form.
  ring::Poly scaled_phase(const rlwe::Plaintext& phase) const;
  /// The residues of the numbers from w, which is given as integers in [0, Q).
  SecretVector<std::uint64_t> residues_of_w(const Ciphertext& ciphertext,
                                            std::span<const std::uint64_t> w,
                                            std::span<const std::uint64_t> q) const;
  SecretVector<std::uint64_t> residues_of_slots(const Ciphertext& ciphertext,
                                                const ring::Poly& phase) const;

  rlwe::Decryptor bodies_;
  std::shared_ptr<const ring::Ring> ring_;
  Encoder encoder_;
  NoiseModel noise_;
  ParamsPtr params_;
};

}  // namespace jali::discrete
