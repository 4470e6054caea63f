#include "jali/client/secret/holder.h"

#include <utility>

#include "jali/base/error.h"
#include "jali/rlwe/host_ring.h"
#include "jali/rlwe/secret/key_generator.h"

namespace jali::client {

Holder hold(ckks::ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
            std::shared_ptr<const rlwe::SecretKey> key, const std::optional<random::Seed>& seed) {
  require<ParamsMismatch>(key->params()->hash() == params->hash(),
                          "the secret key has other parameters than the program");
  auto encoder = std::make_shared<const ckks::Encoder>(params, ring);
  auto encryptor = std::make_shared<ckks::SecretEncryptor>(key, ring, seed);
  auto decryptor = std::make_shared<const ckks::Decryptor>(key, ring);
  return {std::move(params),  std::move(ring),      std::move(key),
          std::move(encoder), std::move(encryptor), std::move(decryptor)};
}

Holder make_holder(ckks::ParamsPtr params, int threads) {
  const auto ring = rlwe::make_host_ring(*params, threads);
  auto key = std::make_shared<const rlwe::SecretKey>(rlwe::KeyGenerator(params, ring).secret_key());
  return hold(std::move(params), ring, std::move(key));
}

}  // namespace jali::client
