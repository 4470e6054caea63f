#include "jali/schemes/ckks/secret/encryptor.h"

#include <utility>

#include "jali/schemes/ckks/encryptor_impl.h"
#include "jali/schemes/ckks/lineage.h"

namespace jali::ckks {

SecretEncryptor::SecretEncryptor(std::shared_ptr<const rlwe::SecretKey> sk,
                                 std::shared_ptr<const ring::Ring> ring,
                                 const std::optional<random::Seed>& seed)
    : bodies_(std::move(sk), std::move(ring), seed) {}

Ciphertext SecretEncryptor::encrypt(const Plaintext& plaintext, const params::Declared& declared) {
  check_declared(plaintext, declared);
  check_same(*plaintext.params, *bodies_.key().params());
  Ciphertext out = with_metadata(bodies_.encrypt(plaintext), plaintext);
  out.estimate =
      params::NoiseModel(*out.params)
          .fresh_secret(declared, out.scale, out.log_slots, lineage_of(*out.seed), plaintext.real);
  return out;
}

}  // namespace jali::ckks
