#include "jali/schemes/ckks/secret/decryptor.h"

#include <utility>

#include "jali/schemes/ckks/encryptor_impl.h"

namespace jali::ckks {

Decryptor::Decryptor(std::shared_ptr<const rlwe::SecretKey> sk,
                     std::shared_ptr<const ring::Ring> ring)
    : bodies_(std::move(sk), std::move(ring)) {}

Plaintext Decryptor::decrypt(const Ciphertext& ciphertext) const {
  check_same(*ciphertext.params, *bodies_.key().params());
  Plaintext out;
  static_cast<rlwe::Plaintext&>(out) = bodies_.decrypt(ciphertext);
  out.params = ciphertext.params;
  out.scale = ciphertext.scale;
  out.log_slots = ciphertext.log_slots;
  out.message = ciphertext.estimate.message;
  out.peak = ciphertext.estimate.peak;
  return out;
}

}  // namespace jali::ckks
