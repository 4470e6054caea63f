// Public keys: what an encryptor and an evaluator are given. Those that hold the secret are in rlwe/secret/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/params/rlwe_params.h"
#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"

namespace jali::rlwe {

/// (b, a) with b = -a s + e over the q primes, NTT form; a is expanded from the seed.
struct PublicKey {
  ParamsPtr params;
  random::Seed seed{};
  ring::Poly b;
};

/// Key that switches s' to s: for digit d, b_d = -a_d s + e_d + P g_d s', NTT form; g_d = 1 modulo the
/// primes of digit d and 0 modulo the other q primes. a_d comes from the seed. A key for the levels
/// up to `level` has no other primes and digits than these need (Params::key_primes).
struct SwitchKey {
  random::Seed seed{};
  std::vector<ring::Poly> b;  // one per digit
  int level = -1;  // -1: every level
  std::size_t bytes() const;  // b halves and seed
};

/// To and from a sparse secret t of weight Params::sparse_weight(), under which a modulus is raised
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

/// In place of the highest level that a key serves: no such key is wanted.
inline constexpr int kNoKey = -2;

/// Everything public that an evaluator needs. Keys by Galois element.
struct EvaluationKeys {
  ParamsPtr params;
  std::optional<SwitchKey> relinearisation;
  std::map<std::uint64_t, SwitchKey> galois;
  std::optional<EncapsulationKeys> encapsulation;
  std::size_t bytes() const;
};

/// A switching key with its uniform halves expanded, as the engine reads it: over the primes of its level
/// (Params::key_primes), nothing more.
struct ExpandedKey {
  device::Buffer data;  // (digit, part, position in primes, coefficient)
  std::size_t digits = 0;
  std::vector<PrimeIndex> primes;
  int level = -1;  // the highest level that it serves; -1: every one
  backend::KeyView view() const { return {data.data(), digits, primes}; }
};

/// Keys that were made in a device's memory, in the host's: for bytes.
PublicKey host_copy(const ring::Ring& ring, const PublicKey& key);
SwitchKey host_copy(const ring::Ring& ring, const SwitchKey& key);
EvaluationKeys host_copy(const ring::Ring& ring, const EvaluationKeys& keys);

ExpandedKey expand(const ring::Ring& ring, const Params& params, const SwitchKey& key);
/// The primes of EncapsulationKeys::to_sparse, ascending: level 0 and sparse_p_primes().
std::vector<PrimeIndex> sparse_key_primes(const Params& params);
/// The uniform half of a public key.
ring::Poly expand_a(const ring::Ring& ring, const Params& params, const PublicKey& key);
/// Uniform polynomials from a seed over `primes`, NTT form: row (i, b) is sample_uniform of stream
/// (index + b) << 16 | primes[i].
ring::Poly expand_uniform(const ring::Ring& ring, const random::Seed& seed, std::uint32_t index,
                          std::span<const PrimeIndex> primes, std::size_t batch = 1);

}  // namespace jali::rlwe
