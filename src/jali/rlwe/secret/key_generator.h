// Makes keys from a secret key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "jali/base/progress.h"
#include "jali/params/ckks_params.h"
#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/rlwe/secret/secret_key.h"

namespace jali::rlwe {

class KeyGenerator {
 public:
  /// seed: empty, so that every key draws its own from the operating system and nothing of them is kept; a given one
  /// makes the keys reproducible, for tests (random::SeedSource says what that costs).
  KeyGenerator(params::CkksParamsPtr params, std::shared_ptr<const ring::Ring> ring,
               const std::optional<random::Seed>& seed = std::nullopt);

  SecretKey secret_key();
  PublicKey public_key(const SecretKey& sk);
  /// Encrypts P g s_from under sk, for levels up to `level` (-1: all).
  SwitchKey switch_key(const ring::Poly& s_from, const SecretKey& sk, int level = -1);
  SwitchKey relinearisation_key(const SecretKey& sk, int level = -1);
  SwitchKey galois_key(std::uint64_t galois_element, const SecretKey& sk, int level = -1);
  /// Draws a sparse secret and forgets it. Throws InvalidArgument for parameters without bootstrapping.
  EncapsulationKeys encapsulation_keys(const SecretKey& sk);
  /// rotations: in slots, any sign, 0 ignored, duplicates made once.
  EvaluationKeys evaluation_keys(const SecretKey& sk, std::span<const int> rotations,
                                 bool conjugate = false, bool relinearise = true);
  /// The same, each key for levels up to one of its own: rotations with their levels, and those of
  /// conjugation and relinearisation (-1: every level; kNoKey: no key). progress: called after each key.
  EvaluationKeys evaluation_keys(const SecretKey& sk, const std::map<int, int>& rotations,
                                 int conjugate, int relinearise, const Progress& progress = {});

 private:
  params::CkksParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  random::SeedSource seeds_;
};

}  // namespace jali::rlwe
