// The evaluator. It chooses levels and factors by itself: operands of an operation may have any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/rlwe/evaluator.h"
#include "jali/schemes/discrete/engine.h"
#include "jali/schemes/discrete/types.h"

namespace jali::discrete {

using rlwe::KeyRecorder;

using Hoisted = rlwe::HoistedOf<Ciphertext>;

/// A rotation times P that is not computed until Evaluator::rotated_sums uses it.
struct Rotation : rlwe::RotationOf<Ciphertext> {
  std::uint64_t factor = 1;
  Estimate estimate{};  // without the factor P
};

/// A ciphertext over Q_level * P, before the division by P.
struct Extended : rlwe::Extended {
  ParamsPtr params;
  std::uint64_t factor = 1;
  Estimate estimate{};  // without the factor P
};

/// All operations are const and may be used from several threads. Ciphertexts have two parts. Of
/// two operands the second may have a batch of 1, except in products of ciphertexts; otherwise
/// batches are equal.
///
/// Every operation says what will be known of its result before it computes, and throws then
/// - RangeExceeded if the numbers may leave the T that residues tell apart, unless `overflow` is
///   wrap or an operand wraps already;
/// - DepthExhausted if the level does not hold the noise, or if no level is left. The sentence
/// names
///   a depth that would do;
/// - InvalidArgument for other batches or memory and for what a packing has no meaning for,
///   ParamsMismatch for other parameters, KeyMismatch for ciphertexts of another secret key, and
///   KeyMissing without the key that it needs.
class Evaluator {
 public:
  // By these names circuits/common and rlwe/composed.h know the types of an evaluator.
  using Ciphertext = discrete::Ciphertext;
  using Hoisted = discrete::Hoisted;
  using Rotation = discrete::Rotation;
  using Extended = discrete::Extended;
  using Composed = rlwe::Evaluator::Composed;

  /// The engine with the keys of a client; keys may be null. Evaluators of many clients may share
  /// an engine.
  Evaluator(std::shared_ptr<const Engine> engine, std::shared_ptr<const rlwe::EvaluationKeys> keys,
            Composed composed = {});
  /// An evaluator that finds out which keys a computation uses. It has none: it writes down each
  /// key that an operation, or has_rotation and the like, asks for, and computes with zeros in its
  /// place. Results have the levels, factors and bounds that they would have with keys, and
  /// meaningless numbers. key_id: that of the operands.
  Evaluator(std::shared_ptr<const Engine> engine, const rlwe::KeyId& key_id,
            std::shared_ptr<KeyRecorder> recorder);

  const std::shared_ptr<const Engine>& engine() const { return engine_; }
  const ParamsPtr& params() const { return engine_->params(); }
  const std::shared_ptr<const ring::Ring>& ring() const { return engine_->ring(); }
  const Encoder& encoder() const { return engine_->encoder(); }
  const NoiseModel& noise() const { return engine_->noise(); }

  // --- keys -----------------------------------------------------------------------------------
  /// The secret key to which its keys belong; none if it has no keys.
  rlwe::KeyId key_id() const { return bodies_.keys()->key_id; }
  /// The bytes that its keys take in the memory of the device.
  std::size_t key_bytes() const { return bodies_.keys()->bytes(); }
  /// Whether there is a key for this rotation (this automorphism, relinearisation) that serves
  /// `level` and all below.
  bool has_rotation(int steps, int level = 0) const { return bodies_.has_rotation(steps, level); }
  bool has_galois(std::uint64_t element, int level = 0) const {
    return bodies_.has_galois(element, level);
  }
  bool has_relinearisation(int level = 0) const { return bodies_.has_relinearisation(level); }
  /// See rlwe::Evaluator.
  bool can_rotate(int steps, int level = 0) const { return bodies_.can_rotate(steps, level); }
  std::vector<int> composition(int steps, int level) const {
    return bodies_.composition(steps, level);
  }
  std::shared_ptr<const rlwe::RotationTree> rotation_tree(std::span<const int> steps,
                                                          int level) const {
    return bodies_.rotation_tree(steps, level);
  }

  // --- what is known ----------------------------------------------------------------------------
  /// Throws ParamsMismatch or KeyMismatch unless the ciphertext has the parameters and the key of
  /// this evaluator. Every operation does so, too.
  void check(const Ciphertext& a) const;
  /// Bits by which the noise may still grow, from public facts alone: positive if decryption is
  /// right.
  double noise_budget(const Ciphertext& a) const;

  // --- copies -----------------------------------------------------------------------------------
  Ciphertext copy(const Ciphertext& a) const;
  /// is_here says whether `a` lies in the memory of this evaluator's device. bring copies to that
  /// memory, send_back to the host's. Operations take ciphertexts that are here; serialization and
  /// decryption take those of the host.
  bool is_here(const Ciphertext& a) const { return bodies_.is_here(a); }
  Ciphertext bring(const Ciphertext& a) const;
  Ciphertext send_back(const Ciphertext& a) const;
  /// One ciphertext with the vectors of a, then those of b. They are brought to one level.
  Ciphertext stack(const Ciphertext& a, const Ciphertext& b) const;
  /// A ciphertext of the vectors [first, first + count) of the batch.
  Ciphertext vectors(const Ciphertext& a, std::size_t first, std::size_t count) const;

  // --- sums -------------------------------------------------------------------------------------
  Ciphertext add(const Ciphertext& a, const Ciphertext& b,
                 Overflow overflow = Overflow::refuse) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b,
                 Overflow overflow = Overflow::refuse) const;
  Ciphertext negate(const Ciphertext& a, Overflow overflow = Overflow::refuse) const;
  Ciphertext add_plain(const Ciphertext& a, const Plaintext& b,
                       Overflow overflow = Overflow::refuse) const;
  Ciphertext sub_plain(const Ciphertext& a, const Plaintext& b,
                       Overflow overflow = Overflow::refuse) const;
  /// Adds one integer to every number.
  Ciphertext add_integer(const Ciphertext& a, std::int64_t b,
                         Overflow overflow = Overflow::refuse) const;

  // --- products ---------------------------------------------------------------------------------
  /// Multiplies every number by one integer, which takes |b| times the noise, where b is centred
  /// modulo T.
  Ciphertext multiply_integer(const Ciphertext& a, std::int64_t b,
                              Overflow overflow = Overflow::refuse) const;
  /// Slot by slot. It takes N T / 2 times the noise.
  Ciphertext multiply_plain(const Ciphertext& a, const Plaintext& b,
                            Overflow overflow = Overflow::refuse) const;
  /// Slot by slot, relinearised. BGV: the result lies one level lower than where it is computed,
  /// which is the level that serves it best (NoiseModel::product_level).
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b,
                      Overflow overflow = Overflow::refuse) const;
  Ciphertext square(const Ciphertext& a, Overflow overflow = Overflow::refuse) const;
  /// sum_k a_k b_k with one relinearisation. BGV alone has this; for BFV, products are added up.
  Ciphertext sum_of_products(
      std::span<const std::pair<const Ciphertext*, const Ciphertext*>> factors,
      Overflow overflow = Overflow::refuse) const;

  // --- levels -----------------------------------------------------------------------------------
  /// The same numbers at a lower level, or at the same one with the level's own factor if they have
  /// it already. A lower level takes less time and memory.
  Ciphertext drop_to(const Ciphertext& a, int level) const;
  /// Division by one level, which leaves the factor to be what it is then. For circuits.
  Ciphertext rescale(const Ciphertext& a) const;

  // --- rotations --------------------------------------------------------------------------------
  /// Rotates both rows to the left: number i of a row is number i + steps of that row of a,
  /// cyclically.
  Ciphertext rotate(const Ciphertext& a, int steps) const;
  /// Exchanges the rows. Its key is that of conjugation.
  Ciphertext swap_rows(const Ciphertext& a) const;
  /// X -> X^element: of slots, one of the above or both.
  Ciphertext automorphism(const Ciphertext& a, std::uint64_t element) const;

  // --- hoisting, for circuits/common ------------------------------------------------------------
  Hoisted hoist(const Ciphertext& a) const;
  Ciphertext rotate_hoisted(const Hoisted& a, int steps) const;
  Extended rotate_extended(const Hoisted& a, int steps) const;  // steps 0: P times the source
  Extended extend(const Ciphertext& a) const;  // P times a
  Rotation rotation(const Hoisted& a, int steps) const;
  /// RlweOps::rotated_sums. The caller says what is known of the sums.
  void rotated_sums(std::span<const Rotation> rotations,
                    std::span<const backend::WeightedSum> sums) const;
  void add_inplace(Extended& a, const Extended& b, Overflow overflow = Overflow::refuse) const;
  void rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                         std::span<const int> steps) const;
  Ciphertext reduce(const Extended& a) const;  // division by P
  Ciphertext reduce_rescale(const Extended& a) const;  // and by one level

 private:
  using Body = rlwe::Ciphertext;
  void check_here(const Ciphertext& a) const;
  void check_slots(const char* what) const;
  void check(const Plaintext& a) const;
  /// A ciphertext without a body, of this key, for a result that is known. Throws DepthExhausted
  /// if its noise does not fit.
  Ciphertext shell(const rlwe::KeyId& key_id, const Known& known) const;
  Extended extended_shell(const Ciphertext& a, const Estimate& estimate) const;
  /// A copy that lies at this lower level with this factor.
  Ciphertext adjusted(const Ciphertext& a, int level, std::uint64_t factor) const;
  Ciphertext with_factor(const Ciphertext& a, std::uint64_t factor) const;

  /// One of two operands, or what it was brought to.
  class Operand;
  struct Pair;
  /// Brings two operands to one level and factor, in the way that leaves their sum most budget.
  Pair aligned(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sum(const Ciphertext& a, const Ciphertext& b, bool subtract, Overflow overflow) const;
  Ciphertext sum_plain(const Ciphertext& a, const Plaintext& b, bool subtract,
                       Overflow overflow) const;
  /// T times the body, over its own primes.
  Body times_t(const Body& a) const;
  std::vector<ring::Poly> product_bfv(const Body& a, const Body& b) const;

  std::shared_ptr<const Engine> engine_;
  rlwe::Evaluator bodies_;
};

}  // namespace jali::discrete
