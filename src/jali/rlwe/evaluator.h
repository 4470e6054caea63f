// What all schemes of RLWE compute in the same way: sums and products of ciphertexts' bodies, key
// switching, rotations and divisions. A scheme's evaluator adds what they do to its messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "jali/base/at_fork.h"
#include "jali/rlwe/ciphertext.h"
#include "jali/rlwe/expanded_keys.h"
#include "jali/rlwe/hoisting.h"
#include "jali/rlwe/key_switch.h"
#include "jali/rlwe/terms.h"

namespace jali::rlwe {

struct RotationTree;  // composed.h

/// The parameters' tables of key switching with the keys of a client. All operations are const and
/// may be used from several threads. Two operands must have equal levels, and equal batches unless
/// the second one's is 1. Operations throw InvalidArgument for others, for another memory and for
/// another number of parts, KeyMismatch for ciphertexts of another secret key, and KeyMissing
/// without the key that they need. Whether ciphertexts belong to these parameters is for the scheme
/// to check: its types know theirs.
class Evaluator {
 public:
  // By these names circuits/common and composed.h know the types of an evaluator.
  using Ciphertext = rlwe::Ciphertext;
  using Hoisted = rlwe::Hoisted;
  using Rotation = rlwe::Rotation;
  using Extended = rlwe::Extended;

  /// Called when a rotation is composed for the first time at a level, with its steps and the
  /// number of its parts; from any thread.
  using Composed = std::function<void(int steps, std::size_t parts)>;

  Evaluator(std::shared_ptr<const KeySwitcher> switcher, std::shared_ptr<const ExpandedKeys> keys,
            Composed composed = {});
  /// The same with tables of its own. keys may be null.
  Evaluator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring, const EvaluationKeys* keys,
            Composed composed = {});

  const ParamsPtr& params() const { return switcher_->params(); }
  const std::shared_ptr<const ring::Ring>& ring() const { return switcher_->ring(); }
  const KeySwitcher& switcher() const { return *switcher_; }
  const std::shared_ptr<const ExpandedKeys>& keys() const { return keys_; }
  const Composed& composed() const { return composed_; }

  // --- keys -----------------------------------------------------------------------------------
  /// The key of an automorphism, or of relinearisation, at `level`. Throws KeyMissing if there is
  /// none that serves it.
  const ExpandedKey& galois_key(std::uint64_t element, int level) const;
  const ExpandedKey& relinearisation_key(int level) const;
  /// Whether there is a key for this rotation (this automorphism, relinearisation) that serves
  /// `level` and all below.
  bool has_rotation(int steps, int level = 0) const;
  bool has_galois(std::uint64_t element, int level = 0) const;
  bool has_relinearisation(int level = 0) const;
  bool has_encapsulation() const;
  /// Whether a rotation is possible at `level`, by its own key or composed of others (composed.h).
  bool can_rotate(int steps, int level = 0) const;
  /// The fewest rotations that make up one by `steps` and have keys that serve `level`, as
  /// fewest_rotations finds them. They are kept, so that they are searched once. Throws KeyMissing
  /// if there are none.
  std::vector<int> composition(int steps, int level) const;
  /// How several rotations of one operand share their parts (composed.h). It is kept, too. Throws
  /// KeyMissing if one of them has no key and cannot be composed.
  std::shared_ptr<const RotationTree> rotation_tree(std::span<const int> steps, int level) const;

  // --- checks ---------------------------------------------------------------------------------
  /// Throws KeyMismatch unless the keys belong to this secret.
  void check_key(const KeyId& key_id) const;
  /// The same of a ciphertext's; throws InvalidArgument if it lies in another memory.
  void check(const Ciphertext& a) const;
  void check(const Extended& a) const;
  /// Throws InvalidArgument unless the levels are equal, and the batches equal or the second 1.
  static void check_pair(int level_a, int level_b, std::size_t batch_a, std::size_t batch_b);

  // --- copies ---------------------------------------------------------------------------------
  Ciphertext copy(const Ciphertext& a) const;
  /// is_here says whether `a` lies in the memory of this evaluator's device. bring copies to that
  /// memory, send_back to the host's. Operations take ciphertexts that are here.
  bool is_here(const Ciphertext& a) const;
  Ciphertext bring(const Ciphertext& a) const;
  Ciphertext send_back(const Ciphertext& a) const;
  /// One ciphertext with the vectors of a, then those of b, which has as many parts.
  Ciphertext stack(const Ciphertext& a, const Ciphertext& b) const;
  /// A ciphertext of the vectors [first, first + count) of the batch.
  Ciphertext vectors(const Ciphertext& a, std::size_t first, std::size_t count) const;

  // --- sums and products ----------------------------------------------------------------------
  // Polynomials are in NTT form, over the primes of the ciphertext's level.
  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  void add_inplace(Ciphertext& a, const Ciphertext& b) const;
  Ciphertext add_plain(const Ciphertext& a, const ring::Poly& b) const;
  Ciphertext sub_plain(const Ciphertext& a, const ring::Poly& b) const;
  Ciphertext multiply_plain(const Ciphertext& a, const ring::Poly& b) const;
  Ciphertext multiply_integer(const Ciphertext& a, std::int64_t b) const;
  /// The product in 3 parts, of operands of two parts and equal batches.
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const;
  /// The parts of a sum over `primes`, which all operands have: three if it has products, else two.
  std::vector<ring::Poly> combine(const Terms& terms, std::span<const PrimeIndex> primes,
                                  std::size_t batch) const;

  // --- key switching and divisions ------------------------------------------------------------
  Ciphertext relinearise(const Ciphertext& a) const;
  /// Divides by Q_level / Q_{level-1}, with rounding: the result lies one level lower.
  Ciphertext rescale(const Ciphertext& a) const;
  /// Divides by Q_level / Q_to, with rounding: the result lies at the lower level `to`.
  Ciphertext divide(const Ciphertext& a, int to) const;
  /// relinearise, then rescale, with one division for both.
  Ciphertext relinearise_rescale(const Ciphertext& a) const;
  Ciphertext multiply_relinearise_rescale(const Ciphertext& a, const Ciphertext& b) const;
  /// The parts of a sum over the primes of `level`, of which at least one term is a product,
  /// relinearised and divided to level `to`, by one division. `to` is that level or a lower one.
  std::vector<ring::Poly> combine_relinearise(const Terms& terms, std::size_t batch, int level,
                                              int to) const;
  /// The same with the next level as `to`.
  std::vector<ring::Poly> combine_relinearise_rescale(const Terms& terms, std::size_t batch,
                                                      int level) const;
  /// The same phase modulo the primes of a lower level, all of which a has.
  Ciphertext select(const Ciphertext& a, int level) const;
  /// round(factor) times a, modulo the primes of level `start`, all of which a has, divided to
  /// level `to`.
  Ciphertext multiply_divide(const Ciphertext& a, double factor, int start, int to) const;
  /// ModRaise, which raise.cpp describes: from level 0 to a higher one. The result has the phase of
  /// a plus q_0 I modulo the larger modulus, where I has small integer coefficients. Throws
  /// KeyMissing without encapsulation keys.
  Ciphertext raise(const Ciphertext& a, int level) const;

  // --- automorphisms --------------------------------------------------------------------------
  /// X -> X^element, and back under the same secret. Ciphertexts have two parts, here and below.
  Ciphertext automorphism(const Ciphertext& a, std::uint64_t element) const;
  /// X -> X^(5^steps), which rotates the slots of a message by `steps`.
  Ciphertext rotate(const Ciphertext& a, int steps) const;

  Lifted lift_digits(const Ciphertext& a) const;
  Hoisted hoist(const Ciphertext& a) const;
  template <class Source>
  Ciphertext rotate_hoisted(const HoistedOf<Source>& a, int steps) const {
    check_source(a.source);
    return rotate_lifted(a, a.source->body(), steps);
  }
  /// steps 0: P times the source.
  template <class Source>
  Extended rotate_extended(const HoistedOf<Source>& a, int steps) const {
    check_source(a.source);
    return rotate_lifted_extended(a, a.source->body(), steps);
  }
  /// The operand of rotated_sums that stands for rotate_extended(a, steps). For steps 0, `a` needs
  /// only its source.
  template <class Source>
  RotationOf<Source> rotation(const HoistedOf<Source>& a, int steps) const {
    check_source(a.source);
    return {a.source, rotated_view(a, a.source->body(), steps)};
  }
  /// RlweOps::rotated_sums over the primes of the rotations' level and of P.
  void rotated_sums(std::span<const Rotation> rotations,
                    std::span<const backend::WeightedSum> sums) const;

  Extended extend(const Ciphertext& a) const;  // P times a
  Extended copy(const Extended& a) const;
  /// Division by P.
  Ciphertext reduce(const Extended& a) const;
  /// Division by P and by one level.
  Ciphertext reduce_rescale(const Extended& a) const;
  /// sum_k a[k] * weights[k]. The weights are over the level's primes and P, and have one row or
  /// one for each vector of the batch.
  Extended multiply_accumulate(std::span<const Extended* const> a,
                               std::span<const ring::Poly* const> weights) const;
  void add_inplace(Extended& a, const Extended& b) const;
  /// acc += the rotation of a, before the division by P. Only the second part of a is divided by P,
  /// for its key switching.
  void rotate_accumulate(Extended& acc, const Extended& a, int steps) const;
  /// acc += the sum over k of a[k] rotated by steps[k]. If acc is empty, it becomes that sum.
  void rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                         std::span<const int> steps) const;

 private:
  bool serves(const ExpandedKey& key, int level) const;
  void require_serves(const ExpandedKey& key, int level) const;
  void check_source(const Ciphertext* source) const;
  /// See composition. Empty if there is none, or if nothing is to be rotated.
  std::vector<int> found_composition(int steps, int level) const;
  std::vector<int> rotations_at(int level) const;  // those that have keys
  Ciphertext rotate_lifted(const Lifted& lifted, const Ciphertext& source, int steps) const;
  Extended rotate_lifted_extended(const Lifted& lifted, const Ciphertext& source, int steps) const;
  backend::Rotated rotated_view(const Lifted& lifted, const Ciphertext& source, int steps) const;
  Accumulator product_of_lifted(const Lifted& lifted, const Ciphertext& source,
                                std::uint64_t element) const;
  ring::Poly turned_first_part(const Ciphertext& source, std::uint64_t element) const;
  ring::Poly like(const Ciphertext& a) const;  // uninitialised, of the shape of a's parts

  const std::shared_ptr<const KeySwitcher> switcher_;
  const std::shared_ptr<const ExpandedKeys> keys_;
  const Composed composed_;
  mutable ForkSafe<std::mutex> compositions_mutex_;
  mutable std::map<std::pair<int, int>, std::vector<int>> compositions_;  // by steps and level
  mutable std::map<std::pair<std::vector<int>, int>, std::shared_ptr<const RotationTree>> trees_;
};

}  // namespace jali::rlwe
