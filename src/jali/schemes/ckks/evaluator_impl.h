// What the files of the evaluator share.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/rlwe/evaluator.h"
#include "jali/schemes/ckks/engine.h"
#include "jali/schemes/ckks/evaluator.h"
#include "jali/schemes/ckks/range.h"

namespace jali::ckks {

struct Evaluator::Impl {
  std::shared_ptr<const Engine> engine;
  // The engine's, by the names that formulas use.
  const ParamsPtr& params = engine->params();
  const std::shared_ptr<const ring::Ring>& ring = engine->ring();
  const Encoder& encoder = engine->encoder();
  const params::NoiseModel& noise = engine->noise();
  const rlwe::KeySwitcher& switcher = *engine->switcher();
  const ring::Poly& imaginary_unit = engine->imaginary_unit();

  /// What an operation does to the body of a ciphertext. This evaluator adds what it does to the
  /// numbers: their scale, and what is known of their size and error.
  const rlwe::Evaluator bodies;
  bool checks_range = true;

  Impl(std::shared_ptr<const Engine> e, std::shared_ptr<const rlwe::ExpandedKeys> keys,
       rlwe::Evaluator::Composed composed)
      : engine(std::move(e)), bodies(engine->switcher(), std::move(keys), std::move(composed)) {}

  /// The product with such a polynomial of modulus 1 in every slot.
  Ciphertext turned(const Ciphertext& a, const ring::Poly& monomial) const;

  /// Throws unless the operand has these parameters and this key, and lies in this memory.
  void check(const Ciphertext& a) const;
  void check(const Plaintext& a) const;
  /// Throws unless the operand, a Ciphertext or an Extended, has these parameters and this key.
  template <class T>
  void check_origin(const T& a) const {
    require<ParamsMismatch>(a.params == params || (a.params && a.params->hash() == params->hash()),
                            "the ciphertext and the evaluator belong to different parameters");
    bodies.check_key(a.key_id);
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
