// Encryption of polynomials under the public key. Encryption under the secret key is in
// rlwe/secret/encryptor.h. What a polynomial means, and how large it may be, is for the scheme to
// say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/ciphertext.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// Fresh small polynomials of the distribution `kind`, in NTT form, in memory that is wiped before
/// it is reused.
ring::Poly small_poly(const ring::Ring& ring, const random::SecretSeed& seed, std::uint64_t stream,
                      std::span<const PrimeIndex> primes, std::size_t batch, backend::Small kind);

/// Encrypts under the public key: (v b + e0 + m, v a + e1). May be called from several threads.
/// seed: if it is empty, every encryption draws its randomness from the operating system and keeps
/// nothing of it. If it is given, encryptions are reproducible, which is for tests only: a forked
/// process then repeats the same randomness, and two messages that were encrypted with the same
/// randomness are readable by everybody (random::SeedSource).
class PublicEncryptor {
 public:
  PublicEncryptor(std::shared_ptr<const PublicKey> pk, std::shared_ptr<const ring::Ring> ring,
                  const std::optional<random::Seed>& seed = std::nullopt);

  const PublicKey& key() const { return *pk_; }
  Ciphertext encrypt(const Plaintext& plaintext);

 private:
  std::shared_ptr<const PublicKey> pk_;
  std::shared_ptr<const ring::Ring> ring_;
  ring::Poly a_;
  random::SeedSource seeds_;
};

}  // namespace jali::rlwe
