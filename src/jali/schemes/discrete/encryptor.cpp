#include "jali/schemes/discrete/encryptor.h"

#include <utility>

#include "jali/base/error.h"

namespace jali::discrete {

rlwe::Plaintext for_encryption(const Encoder& encoder, const Plaintext& plaintext, int level) {
  require<InvalidArgument>(plaintext.params != nullptr, "an empty plaintext holds no numbers");
  const Params& params = *plaintext.params;
  const int at = level < 0 ? params.top() : level;
  return {encoder.scaled(plaintext, at, params.factor(at)), at};
}

Ciphertext with_metadata(rlwe::Ciphertext body, const Plaintext& plaintext,
                         const Estimate& estimate) {
  Ciphertext out;
  out.body() = std::move(body);
  out.params = plaintext.params;
  out.factor = out.params->factor(out.level);
  out.estimate = estimate;
  NoiseModel(*out.params).require_budget(estimate, out.level);
  return out;
}

void check_same(const Plaintext& plaintext, const rlwe::Params& key) {
  require<InvalidArgument>(plaintext.params != nullptr, "an empty plaintext holds no numbers");
  require<ParamsMismatch>(plaintext.params->hash() == key.hash(),
                          "the plaintext and the key belong to different parameters");
}

PublicEncryptor::PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk,
                                 std::shared_ptr<const ring::Ring> ring, ParamsPtr params,
                                 const std::optional<random::Seed>& seed)
    : bodies_(std::move(pk), ring, seed), encoder_(params, ring), params_(std::move(params)) {
  require<ParamsMismatch>(bodies_.key().params->hash() == params_->hash(),
                          "the key belongs to other parameters");
}

Ciphertext PublicEncryptor::encrypt(const Plaintext& plaintext, int level) {
  check_same(plaintext, *bodies_.key().params);
  return with_metadata(bodies_.encrypt(for_encryption(encoder_, plaintext, level)), plaintext,
                       NoiseModel(*params_).fresh_public(plaintext.range));
}

}  // namespace jali::discrete
