// Secret, public and switching keys.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/params/ckks_params.h"
#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"

namespace jali::rlwe {

/// Uniform ternary secret over all primes, NTT form, in memory that is wiped. Cannot be printed.
class SecretKey {
 public:
  SecretKey(params::CkksParamsPtr params, ring::Poly s)
      : params_(std::move(params)), s_(std::move(s)) {}
  const params::CkksParamsPtr& params() const { return params_; }
  const ring::Poly& poly() const { return s_; }  // NTT form over params().all_primes()
  /// The limbs of s at `primes`, again in memory that is wiped.
  ring::Poly at(const ring::Ring& ring, std::span<const PrimeIndex> primes) const;

 private:
  params::CkksParamsPtr params_;
  ring::Poly s_;
};

/// (b, a) with b = -a s + e over the q primes, NTT form; a is expanded from the seed.
struct PublicKey {
  params::CkksParamsPtr params;
  random::Seed seed{};
  ring::Poly b;
};

/// Key that switches s' to s: for digit d, b_d = -a_d s + e_d + P g_d s', NTT form; g_d = 1 modulo the
/// primes of digit d and 0 modulo the other q primes. a_d comes from the seed. A key for the levels
/// up to `level` has no other primes and digits than these need (CkksParams::key_primes).
struct SwitchKey {
  random::Seed seed{};
  std::vector<ring::Poly> b;  // one per digit
  int level = -1;             // -1: every level
  std::size_t bytes() const;  // b halves and seed
};

/// To and from a sparse secret t of CkksParams::bootstrap's weight, under which a modulus is raised
/// (Bossuat, Troncoso-Pastoriza and Hubaux 2022). Each is one pair, for one digit.
struct EncapsulationKeys {
  /// b = -a t + e + P' s over level 0 and sparse_p_primes(), P' their product: the only thing ever
  /// encrypted under t.
  random::Seed to_sparse_seed{};
  ring::Poly to_sparse;
  /// b = -a s + e + P t over all primes.
  random::Seed to_dense_seed{};
  ring::Poly to_dense;
  std::size_t bytes() const;  // b halves and seeds
};

/// Everything public that an evaluator needs. Keys by Galois element.
struct EvaluationKeys {
  params::CkksParamsPtr params;
  std::optional<SwitchKey> relinearisation;
  std::map<std::uint64_t, SwitchKey> galois;
  std::optional<EncapsulationKeys> encapsulation;
  std::size_t bytes() const;
};

/// A switching key with its uniform halves expanded, as the engine reads it: over the primes of its level
/// (CkksParams::key_primes), nothing more.
struct ExpandedKey {
  device::Buffer data;  // (digit, part, position in primes, coefficient)
  std::size_t digits = 0;
  std::vector<PrimeIndex> primes;
  int level = -1;  // the highest level that it serves; -1: every one
  backend::KeyView view() const { return {data.data(), digits, primes}; }
};

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
  /// conjugation and relinearisation (-1: every level; kNone: no key).
  static constexpr int kNone = -2;
  /// progress: called after each key with how many there are and how many there will be.
  using Progress = std::function<void(std::size_t done, std::size_t total)>;
  EvaluationKeys evaluation_keys(const SecretKey& sk, const std::map<int, int>& rotations,
                                 int conjugate, int relinearise, const Progress& progress = {});

 private:
  params::CkksParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  random::SeedSource seeds_;
};

/// Keys that were made in a device's memory, in the host's: for bytes.
PublicKey host_copy(const ring::Ring& ring, const PublicKey& key);
SwitchKey host_copy(const ring::Ring& ring, const SwitchKey& key);
EvaluationKeys host_copy(const ring::Ring& ring, const EvaluationKeys& keys);

ExpandedKey expand(const ring::Ring& ring, const params::CkksParams& params, const SwitchKey& key);
/// The primes of EncapsulationKeys::to_sparse, ascending: level 0 and sparse_p_primes().
std::vector<PrimeIndex> sparse_key_primes(const params::CkksParams& params);
/// The uniform half of a public key.
ring::Poly expand_a(const ring::Ring& ring, const params::CkksParams& params, const PublicKey& key);
/// Uniform polynomials from a seed over `primes`, NTT form: row (i, b) is sample_uniform of stream
/// (index + b) << 16 | primes[i].
ring::Poly expand_uniform(const ring::Ring& ring, const random::Seed& seed, std::uint32_t index,
                          std::span<const PrimeIndex> primes, std::size_t batch = 1);

}  // namespace jali::rlwe
