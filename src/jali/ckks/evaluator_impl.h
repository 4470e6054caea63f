// What the files of the evaluator share.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/at_fork.h"
#include "jali/base/error.h"
#include "jali/ckks/engine.h"
#include "jali/ckks/evaluator.h"
#include "jali/ckks/range.h"
#include "jali/rlwe/key_switch.h"

namespace jali::ckks {

/// rlwe::EncapsulationKeys with their uniform halves expanded from the seeds.
struct Encapsulation {
  ring::Poly sparse_b, sparse_a;  // over rlwe::sparse_key_primes
  ring::Poly dense_b, dense_a;    // over all primes
};

Encapsulation expand_encapsulation(const ring::Ring& ring, const Params& params,
                                   const rlwe::EncapsulationKeys& keys);

/// The keys in the form that the engine reads. An evaluator for a part of some parameters shares
/// those of the whole.
struct ExpandedKeys {
  rlwe::KeyId key_id;
  std::optional<rlwe::ExpandedKey> relinearisation;
  std::map<std::uint64_t, rlwe::ExpandedKey> galois;
  std::vector<std::pair<int, const rlwe::ExpandedKey*>>
      rotations;  // those of `galois`, by their steps
  std::optional<Encapsulation> encapsulation;
  std::shared_ptr<KeyRecorder> recorder;  // if there is one, `zeros` stands for every key
  rlwe::ExpandedKey zeros;
};

struct Evaluator::Impl {
  std::shared_ptr<const Engine> engine;
  // The engine's, by the names that formulas use.
  const ParamsPtr& params = engine->params();
  const std::shared_ptr<const ring::Ring>& ring = engine->ring();
  const Encoder& encoder = engine->encoder();
  const params::NoiseModel& noise = engine->noise();
  const rlwe::KeySwitcher& switcher = engine->switcher();
  const ring::Poly& imaginary_unit = engine->imaginary_unit();

  std::shared_ptr<const ExpandedKeys> keys;
  bool checks_range = true;
  Composed composed;
  mutable ForkSafe<std::mutex> compositions_mutex;
  mutable std::map<std::pair<int, int>, std::vector<int>> compositions;  // by steps and level

  Impl(std::shared_ptr<const Engine> e, std::shared_ptr<const ExpandedKeys> k, Composed c)
      : engine(std::move(e)), keys(std::move(k)), composed(std::move(c)) {}

  /// The product with such a polynomial of modulus 1 in every slot.
  Ciphertext turned(const Ciphertext& a, const ring::Poly& monomial) const;
  /// See Evaluator::composition. Empty if there is none, or if nothing is to be rotated.
  std::vector<int> composition(int steps, int level) const;
  /// The key of an automorphism, or of relinearisation, at `level`. Throws KeyMissing if there is
  /// none that serves it.
  const rlwe::ExpandedKey& galois_key(std::uint64_t element, int level) const;
  const rlwe::ExpandedKey& relinearisation_key(int level) const {
    if (keys->recorder) {
      keys->recorder->use_relinearisation(params->whole_level(level));
      return keys->zeros;
    }
    require<KeyMissing>(keys->relinearisation.has_value(),
                        "no relinearisation key: make the keys with relinearise=True");
    require_serves(*keys->relinearisation, level);
    return *keys->relinearisation;
  }
  bool serves(const rlwe::ExpandedKey& key, int level) const {
    return key.level < 0 || params->whole_level(level) <= key.level;
  }
  void require_serves(const rlwe::ExpandedKey& key, int level) const {
    require<KeyMissing>(serves(key, level), [&] {
      return "a key was made for levels up to " + std::to_string(key.level) +
             " and is needed at level " + std::to_string(level) + ": make it for that level";
    });
  }

  /// Throws unless the operand has these parameters and this key, and lies in this memory.
  void check(const Ciphertext& a) const;
  void check(const Plaintext& a) const;
  /// Throws unless the operand, a Ciphertext or an Extended, has these parameters and this key.
  template <class T>
  void check_origin(const T& a) const {
    require<ParamsMismatch>(a.params == params || (a.params && a.params->hash() == params->hash()),
                            "the ciphertext and the evaluator belong to different parameters");
    require<KeyMismatch>(rlwe::agree(a.key_id, keys->key_id),
                         "the ciphertext and the evaluator's keys belong to different secret keys: "
                         "make an evaluator for each client, with the evaluation keys of that "
                         "client");
  }
  void check_pair(int level_a, double scale_a, int level_b, double scale_b, std::size_t batch_a,
                  std::size_t batch_b, bool scales_matter) const;
  void require_level(int level, int needed) const {
    require<DepthExhausted>(level >= needed, [&] {
      return "level " + std::to_string(level) +
             " has no level left to drop: the circuit needs more " + "depth than the " +
             std::to_string(params->depth()) + " of these parameters, " +
             "Params.create(depth=" + std::to_string(params->depth() + 1) + ") or more";
    });
  }
  /// Q_from / Q_to as a number.
  double ratio(int from, int to) const {
    double product = 1;
    for (int l = from; l > to; --l) product *= params->ratio(l);
    return product;
  }

  Ciphertext shell(const Ciphertext& a) const;  // a's metadata, but no parts, seed or packing
  /// The same, for what is computed from a and b. Throws KeyMismatch if they belong to different
  /// keys.
  Ciphertext shell(const Ciphertext& a, const Ciphertext& b) const;
  ring::Poly like(const Ciphertext& a) const;  // uninitialised, of the shape of a's parts
  /// Throws ScaleMismatch if no object of this level can have such a scale. That happens with
  /// hostile objects, or if products were never rescaled.
  void require_scale(double scale, int level) const;
  /// Throws RangeExceeded if the level cannot hold what the metadata of a result says of its
  /// numbers.
  void require_range(const Ciphertext& result) const {
    require_range(result.estimate, result.scale, result.level);
  }
  void require_range(const Estimate& result, double scale, int level) const {
    if (checks_range) ckks::require_range(*params, result, scale, level);
  }
  /// Throws InvalidArgument if the already scaled constant does not fit the level.
  void require_room(double constant, int level) const;
  /// The metadata after a key switching's sum is divided by P and by the last primes of the level.
  /// out: those before. Throws as require_scale and require_range.
  Ciphertext divided(Ciphertext out) const;
  /// The estimate of an operand. Its error has no bound if its numbers may not fit its level.
  Estimate known(const Estimate& a, double scale, int level) const;
  Estimate known(const Ciphertext& a) const { return known(a.estimate, a.scale, a.level); }
  Estimate known(const Extended& a) const { return known(a.estimate, a.scale, a.level); }
  /// The estimate of the product. a and b may be the same object.
  Estimate product(const Ciphertext& a, const Ciphertext& b) const;
  /// The estimate of a plaintext operand.
  Estimate known(const Plaintext& b) const {
    return noise.plaintext(b.message, b.peak, b.scale, b.log_slots, b.real);
  }
  /// The error that arises if b's numbers, which are at scale_b, are taken to be at scale_a.
  params::Noise scale_mismatch(const Estimate& b, double scale_a, double scale_b) const {
    return noise.scale_mismatch(b, scale_a - scale_b);
  }
};

}  // namespace jali::ckks
