// What the files of the evaluator share.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "jali/base/error.h"
#include "jali/ckks/evaluator.h"
#include "jali/rlwe/key_switch.h"

namespace jali::ckks {

/// EncapsulationKeys with their uniform halves expanded.
struct Encapsulation {
  ring::Poly sparse_b, sparse_a;  // over rlwe::sparse_key_primes
  ring::Poly dense_b, dense_a;    // over all primes
};

Encapsulation expand_encapsulation(const ring::Ring& ring, const Params& params,
                                   const rlwe::EncapsulationKeys& keys);

/// Keys as the engine reads them; evaluators of parts of some parameters share those of the whole.
struct ExpandedKeys {
  std::optional<rlwe::ExpandedKey> relinearisation;
  std::map<std::uint64_t, rlwe::ExpandedKey> galois;
  std::optional<Encapsulation> encapsulation;
};

struct Evaluator::Impl {
  ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  Encoder encoder;
  params::NoiseModel noise;
  rlwe::KeySwitcher switcher;
  std::shared_ptr<const ExpandedKeys> keys;
  ring::Poly imaginary_unit;  // X^(N/2) over all q primes, NTT form

  Impl(ParamsPtr p, std::shared_ptr<const ring::Ring> r, std::shared_ptr<const ExpandedKeys> k);

  /// Keys that serve `level`.
  const rlwe::ExpandedKey& galois_key(std::uint64_t element, int level) const;
  const rlwe::ExpandedKey& relinearisation_key(int level) const {
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

  void check(const Ciphertext& a) const;  // of these parameters, in this memory
  void check(const Plaintext& a) const;
  void check_parameters(const Ciphertext& a) const;
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

  Ciphertext shell(const Ciphertext& a) const;  // a's metadata without parts, seed and packing
  ring::Poly like(const Ciphertext& a) const;   // uninitialised, of a's shape
  /// Throws where no object of this level has such a scale: a hostile one, or products never rescaled.
  void require_scale(double scale, int level) const;
  /// Throws where a constant of this size, scaled, does not fit the level.
  void require_room(double constant, int level) const;
  /// What a constant adds to what is known of a ciphertext.
  void add_constant(Estimate& estimate, std::complex<double> b, double scale) const;
  /// Division of a key switch's sum by P and the last primes of the level; out: the metadata before it.
  Ciphertext reduced(const rlwe::Accumulator& acc, Ciphertext out) const;
  /// What is known of an operand: without a bound where its numbers may not fit its level.
  Estimate known(const Estimate& a, double scale, int level) const;
  Estimate known(const Ciphertext& a) const { return known(a.estimate, a.scale, a.level); }
  Estimate known(const Extended& a) const { return known(a.estimate, a.scale, a.level); }
  /// What is known of a product of the two, which may be one.
  Estimate product(const Ciphertext& a, const Ciphertext& b) const;
  /// What is known of a plaintext as an operand.
  Estimate known(const Plaintext& b) const;
  /// Of b's numbers, at scale_b, where they are taken to be at scale_a.
  params::Noise scale_mismatch(const Estimate& b, double scale_a, double scale_b) const {
    return noise.scale_mismatch(b.message, b.peak, scale_a - scale_b);
  }
};

}  // namespace jali::ckks
