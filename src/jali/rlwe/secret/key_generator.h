// Makes keys from a secret key.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "jali/base/progress.h"
#include "jali/params/rlwe_params.h"
#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/rlwe/secret/secret_key.h"

namespace jali::rlwe {

class KeyGenerator {
 public:
  /// seed: if it is empty, every key draws its own seeds from the operating system, and none of
  /// them is kept. A seed that is given makes the keys reproducible, for tests; random::SeedSource
  /// says what that costs.
  KeyGenerator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
               const std::optional<random::Seed>& seed = std::nullopt);

  SecretKey secret_key();
  PublicKey public_key(const SecretKey& sk);
  /// A key that switches from s_from, in NTT form over all primes, to sk. level: the highest that
  /// the key serves; -1 stands for every level.
  SwitchKey switch_key(const ring::Poly& s_from, const SecretKey& sk, int level = -1);
  SwitchKey relinearisation_key(const SecretKey& sk, int level = -1);
  /// Throws InvalidArgument unless galois_element is odd and below 2N.
  SwitchKey galois_key(std::uint64_t galois_element, const SecretKey& sk, int level = -1);
  /// Draws a sparse secret, encrypts with it, and forgets it. Throws InvalidArgument if the
  /// parameters have no sparse secret, because they have no bootstrapping.
  EncapsulationKeys encapsulation_keys(const SecretKey& sk);
  /// rotations: numbers of slots, of any sign. 0 needs no key, and equal ones share one. Every key
  /// serves every level.
  EvaluationKeys evaluation_keys(const SecretKey& sk, std::span<const int> rotations,
                                 bool conjugate = false, bool relinearise = true);
  /// What is done with each key of a demand: first the one for products, then those of Galois
  /// elements in ascending order, then those of bootstrapping.
  struct Each {
    std::function<void(SwitchKey key)> relinearisation;
    std::function<void(std::uint64_t element, SwitchKey key)> galois;
    std::function<void(EncapsulationKeys keys)> encapsulation;
  };
  /// Makes the keys of a demand one by one, and keeps none. progress: called after each key.
  void make(const SecretKey& sk, const KeyDemand& demand, const Each& each,
            const Progress& progress = {});
  /// The keys of a demand, and no others. progress: called after each key.
  EvaluationKeys keys_for(const SecretKey& sk, const KeyDemand& demand,
                          const Progress& progress = {});
  /// Makes every key for the levels up to one of its own. rotations: numbers of slots, each with
  /// the highest level of its key. conjugate, relinearise: the highest level of these keys. A level
  /// of -1 stands for every level, and kNoKey for no key. progress: called after each key.
  EvaluationKeys evaluation_keys(const SecretKey& sk, const std::map<int, int>& rotations,
                                 int conjugate, int relinearise, const Progress& progress = {});

 private:
  ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  random::SeedSource seeds_;
};

}  // namespace jali::rlwe
