// The secret key, and what computes with it.
#pragma once

#include <memory>
#include <optional>

#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"

namespace jali::client {

/// Several clients may share it: its parts may be used from several threads.
struct Holder {
  ckks::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const rlwe::SecretKey> key;  // in the memory of the ring
  std::shared_ptr<const ckks::Encoder> encoder;
  std::shared_ptr<ckks::SecretEncryptor> encryptor;
  std::shared_ptr<const ckks::Decryptor> decryptor;
};

/// seed: of encryptions, for tests only; see ckks/encryptor.h.
Holder hold(ckks::ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
            std::shared_ptr<const rlwe::SecretKey> key,
            const std::optional<random::Seed>& seed = std::nullopt);
/// A new key, on the CPU.
Holder make_holder(ckks::ParamsPtr params, int threads = 1);

}  // namespace jali::client
