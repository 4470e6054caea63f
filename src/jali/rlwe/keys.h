// The keys that an encryptor and an evaluator are given, which are public. Keys that hold the
// secret are in rlwe/secret/.
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
#include "jali/rlwe/key_id.h"

namespace jali::rlwe {

/// (b, a) with b = -a s + e, over the q primes and in NTT form. a is expanded from the seed.
struct PublicKey {
  ParamsPtr params;
  KeyId key_id;
  random::Seed seed{};
  ring::Poly b;
};

/// A key that switches from s' to s. Digit d is the pair (b_d, a_d) with b_d = -a_d s + e_d + P g_d
/// s', in NTT form. g_d is 1 modulo the primes of digit d and 0 modulo the other q primes. a_d is
/// expanded from the seed. A key for the levels up to `level` has only the primes and digits that
/// these levels need (Params::key_primes, Params::key_digits).
struct SwitchKey {
  random::Seed seed{};
  std::vector<ring::Poly> b;  // one per digit
  int level = -1;  // the highest level that the key serves; -1: every level
  std::size_t bytes() const;  // of the b halves and the seed
};

/// Two switching keys, to and from a sparse secret t of weight Params::sparse_weight(), under which
/// a modulus is raised (Bossuat, Troncoso-Pastoriza and Hubaux 2022). Each has one digit, so it is
/// one pair.
struct EncapsulationKeys {
  /// b = -a t + e + P' s over the primes of level 0 and sparse_p_primes(), whose product is P'.
  /// Nothing else is ever encrypted under t.
  random::Seed to_sparse_seed{};
  ring::Poly to_sparse;
  /// b = -a s + e + P t over all primes.
  random::Seed to_dense_seed{};
  ring::Poly to_dense;
  std::size_t bytes() const;  // of the b halves and the seeds
};

/// Stands in the place of a level if no such key is wanted.
inline constexpr int kNoKey = -2;

/// The keys that a computation uses, each with the highest level at which it does; -1 stands for
/// every level.
struct KeyDemand {
  std::map<std::uint64_t, int> galois;  // by Galois element
  int relinearise = kNoKey;
  bool encapsulation = false;
  bool operator==(const KeyDemand&) const = default;
};

/// All keys of an evaluator.
struct EvaluationKeys {
  ParamsPtr params;
  KeyId key_id;  // of the secret to which all of them switch
  std::optional<SwitchKey> relinearisation;
  std::map<std::uint64_t, SwitchKey> galois;  // by Galois element
  std::optional<EncapsulationKeys> encapsulation;
  std::size_t bytes() const;
};

/// A switching key with its uniform halves expanded, as an engine reads it. It has the primes of
/// Params::key_primes(level).
struct ExpandedKey {
  device::Buffer data;  // in the order (digit, part, position in primes, coefficient)
  std::size_t digits = 0;
  std::vector<PrimeIndex> primes;
  int level = -1;  // the highest level that the key serves; -1: every level
  backend::KeyView view() const { return {data.data(), digits, primes}; }
};

/// Copies in host memory of keys that may lie in a device's memory. to_bytes needs them there.
PublicKey host_copy(const ring::Ring& ring, const PublicKey& key);
SwitchKey host_copy(const ring::Ring& ring, const SwitchKey& key);
EvaluationKeys host_copy(const ring::Ring& ring, const EvaluationKeys& keys);

/// Expands the uniform halves of a key, in the ring's memory. Throws ParamsMismatch if the key's
/// digits or primes are not those that the parameters give its level.
ExpandedKey expand(const ring::Ring& ring, const Params& params, const SwitchKey& key);
/// The primes of EncapsulationKeys::to_sparse, ascending: level 0 and sparse_p_primes().
std::vector<PrimeIndex> sparse_key_primes(const Params& params);
/// The uniform half of a public key.
ring::Poly expand_a(const ring::Ring& ring, const Params& params, const PublicKey& key);
/// Uniform polynomials over `primes`, in NTT form, expanded from a seed. Row (i, b) is
/// random::sample_uniform of stream (index + b) << 16 | primes[i].
ring::Poly expand_uniform(const ring::Ring& ring, const random::Seed& seed, std::uint32_t index,
                          std::span<const PrimeIndex> primes, std::size_t batch = 1);

}  // namespace jali::rlwe
