#include "jali/schemes/discrete/secret/encryptor.h"

#include <utility>

#include "jali/base/error.h"

namespace jali::discrete {

SecretEncryptor::SecretEncryptor(std::shared_ptr<const rlwe::SecretKey> sk,
                                 std::shared_ptr<const ring::Ring> ring, ParamsPtr params,
                                 const std::optional<random::Seed>& seed)
    : bodies_(std::move(sk), ring, seed), encoder_(params, ring), params_(std::move(params)) {
  require<ParamsMismatch>(bodies_.key().params()->hash() == params_->hash(),
                          "the key belongs to other parameters");
}

Ciphertext SecretEncryptor::encrypt(const Plaintext& plaintext, int level) {
  check_same(plaintext, *bodies_.key().params());
  return with_metadata(bodies_.encrypt(for_encryption(encoder_, plaintext, level)), plaintext,
                       NoiseModel(*params_).fresh_secret(plaintext.range));
}

}  // namespace jali::discrete
