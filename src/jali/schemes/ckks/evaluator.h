// The explicit evaluator: every homomorphic operation by itself. The caller decides when to
// relinearise and rescale; AutoEvaluator (auto_evaluator.h) does that for the caller.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/rlwe/evaluator.h"
#include "jali/schemes/ckks/engine.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

using rlwe::KeyRecorder;

using Hoisted = rlwe::HoistedOf<Ciphertext>;

/// A rotation times P that is not computed until Evaluator::rotated_sums uses it.
struct Rotation : rlwe::RotationOf<Ciphertext> {
  double scale = 1;
  Estimate estimate;  // without the factor P
};

/// A ciphertext over Q_level * P, before the division by P.
struct Extended : rlwe::Extended {
  ParamsPtr params;
  double scale = 1;
  int log_slots = 0;
  Estimate estimate;  // in units without the factor P
};

/// sum_k factor_k a_k b_k + sum_k factor_k x_k + constant, for ciphertexts of two parts.
struct Combination {
  struct Product {
    const Ciphertext* a;
    const Ciphertext* b;
    double factor = 1;  // 1 or 2
  };
  struct Multiple {
    const Ciphertext* x;
    double factor;
  };
  std::vector<Product> products{};
  std::vector<Multiple> multiples{};
  std::complex<double> constant{};
  /// No number of the sum is larger, if the caller knows a smaller bound than the terms'.
  double peak = params::kUnbounded;
};

/// All operations are const and may be used from several threads. Two operands must have equal
/// levels (drop_to brings one down), and, in sums, scales that are equal to within 2^-20 of
/// themselves. Operations throw InvalidArgument for other levels, batches or memory, ScaleMismatch
/// for other scales, ParamsMismatch for other parameters, KeyMismatch for ciphertexts of another
/// secret key, DepthExhausted if no level is left, and KeyMissing without the key that they need.
class Evaluator {
 public:
  // By these names circuits/common and rlwe/composed.h know the types of an evaluator.
  using Ciphertext = ckks::Ciphertext;
  using Hoisted = ckks::Hoisted;
  using Rotation = ckks::Rotation;
  using Extended = ckks::Extended;
  using Composed = rlwe::Evaluator::Composed;

  /// The engine with the keys of a client. Evaluators of many clients may share an engine.
  Evaluator(std::shared_ptr<const Engine> engine, std::shared_ptr<const rlwe::EvaluationKeys> keys,
            Composed composed = {});
  /// The same with an engine of its own.
  Evaluator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
            std::shared_ptr<const rlwe::EvaluationKeys> keys, Composed composed = {});
  /// An evaluator that finds out which keys a computation uses. It has none: it writes down each
  /// key that an operation, or has_rotation and the like, asks for, and computes with zeros in its
  /// place. Results have the levels, scales and bounds that they would have with keys, and
  /// meaningless numbers. No rotation is composed. key_id: that of the operands.
  Evaluator(std::shared_ptr<const Engine> engine, const rlwe::KeyId& key_id,
            std::shared_ptr<KeyRecorder> recorder);
  /// An evaluator for parameters that with_depth made from those of `whole`. It shares the keys and
  /// the ring of `whole`. checks_range: whether operations refuse results that their level may not
  /// hold. Only a circuit that guards its numbers by itself, as bootstrapping does, does without:
  /// it adds up more than bounds on slots know.
  Evaluator(const ParamsPtr& part, const Evaluator& whole, bool checks_range = true);
  ~Evaluator();

  /// Throws ParamsMismatch or KeyMismatch unless the ciphertext has the parameters and the key of
  /// this evaluator. Every operation does so, too.
  void check(const Ciphertext& a) const;
  /// The secret key to which its keys belong; none if it has no keys.
  rlwe::KeyId key_id() const;
  /// The bytes that its keys take in the memory of the device.
  std::size_t key_bytes() const;

  const std::shared_ptr<const Engine>& engine() const;
  // The engine's.
  const ParamsPtr& params() const;
  const std::shared_ptr<const ring::Ring>& ring() const;
  const Encoder& encoder() const;
  const params::NoiseModel& noise() const;
  /// Whether there is a key for this rotation (this automorphism, relinearisation) that serves
  /// `level` and all below.
  bool has_rotation(int steps, int level = 0) const;
  bool has_galois(std::uint64_t element, int level = 0) const;
  bool has_relinearisation(int level = 0) const;
  /// Whether a rotation is possible at `level`, by its own key or composed of others
  /// (rlwe/composed.h).
  bool can_rotate(int steps, int level = 0) const;
  /// The fewest rotations that make up one by `steps` and have keys that serve `level`, as
  /// fewest_rotations finds them. They are kept, so that they are searched once. Throws KeyMissing
  /// if there are none.
  std::vector<int> composition(int steps, int level) const;
  /// See rlwe::Evaluator.
  std::shared_ptr<const rlwe::RotationTree> rotation_tree(std::span<const int> steps,
                                                          int level) const;

  Ciphertext copy(const Ciphertext& a) const;
  /// is_here says whether `a` lies in the memory of this evaluator's device. bring copies to that
  /// memory, send_back to the host's. Operations take ciphertexts that are here; serialization and
  /// decryption take those of the host.
  bool is_here(const Ciphertext& a) const;
  Ciphertext bring(const Ciphertext& a) const;
  Ciphertext send_back(const Ciphertext& a) const;

  // peak, wherever an operation takes it: no number of the result is larger. It is for callers who
  // know a smaller bound than that of the operands.

  // HADD
  Ciphertext add(const Ciphertext& a, const Ciphertext& b, double peak = params::kUnbounded) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  Ciphertext add_plain(const Ciphertext& a, const Plaintext& b) const;
  Ciphertext sub_plain(const Ciphertext& a, const Plaintext& b) const;
  /// A compact plaintext is expanded at the ciphertext's level. Its scale must be that of a.
  Ciphertext add_plain(const Ciphertext& a, const CompactPlaintext& b) const;
  Ciphertext sub_plain(const Ciphertext& a, const CompactPlaintext& b) const;
  Ciphertext add_scalar(const Ciphertext& a, std::complex<double> b) const;
  void add_inplace(Ciphertext& a, const Ciphertext& b, double peak = params::kUnbounded) const;

  // CMULT: the scale becomes a.scale * b.scale
  Ciphertext multiply_plain(const Ciphertext& a, const Plaintext& b) const;
  Ciphertext multiply_plain(const Ciphertext& a, const CompactPlaintext& b) const;
  /// Multiplies by round(b * scale), for a scale of at least 1. The imaginary part is a multiple of
  /// X^(N/2).
  Ciphertext multiply_scalar(const Ciphertext& a, std::complex<double> b, double scale) const;
  /// Multiply by an integer, or by the imaginary unit. Both are exact and leave the scale as it is.
  Ciphertext multiply_integer(const Ciphertext& a, std::int64_t b) const;
  Ciphertext multiply_i(const Ciphertext& a) const;
  /// Multiplies by X^exponent, 0 <= exponent < 2N: slot j by zeta^(5^j exponent). It is exact and
  /// leaves the scale as it is.
  Ciphertext multiply_monomial(const Ciphertext& a, std::size_t exponent) const;
  /// Makes the polynomial of multiply_monomial now, which copies it to the device, instead of at
  /// its first use.
  void prepare_monomial(std::size_t exponent) const;
  /// One ciphertext with the vectors of a, then those of b. Levels, scales, numbers of parts and
  /// slots must be equal.
  Ciphertext stack(const Ciphertext& a, const Ciphertext& b) const;
  /// A ciphertext of the vectors [first, first + count) of the batch.
  Ciphertext vectors(const Ciphertext& a, std::size_t first, std::size_t count) const;

  // HMULT
  /// The product in 3 parts.
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b,
                      double peak = params::kUnbounded) const;
  Ciphertext square(const Ciphertext& a) const;
  Ciphertext relinearise(const Ciphertext& a) const;
  /// Divides by Q_level / Q_{level-1}: the result lies one level lower, and its scale is smaller by
  /// the same factor.
  Ciphertext rescale(const Ciphertext& a) const;
  /// relinearise, then rescale, with one division for both.
  Ciphertext relinearise_rescale(const Ciphertext& a) const;
  Ciphertext multiply_relinearise_rescale(const Ciphertext& a, const Ciphertext& b) const;

  /// Computes the combination at this level and scale, relinearises it, and rescales it to the
  /// level below; one division serves both. Operands may lie at higher levels. A factor of a
  /// product must then have all limbs of `level`; a multiple need not. For every product, factor *
  /// scale must be a.scale * b.scale or twice that; otherwise it throws ScaleMismatch.
  Ciphertext combine_rescale(const Combination& c, int level, double scale) const;

  /// The same message and scale at a lower level.
  Ciphertext drop_to(const Ciphertext& a, int level) const;
  /// Brings `a` to exactly (level, scale), for a level below a's, by one multiplication with an
  /// integer and one rescaling. The integer is rounded: it is off by at most 2^-20 of itself, or,
  /// for small scales, by less than the rounding of the rescaling. The multiplication is done at
  /// level + 1, which is cheaper, if the integer is off by less than `near` there; otherwise at a's
  /// level. Throws ScaleMismatch if no integer is close enough.
  Ciphertext adjust(const Ciphertext& a, int level, double scale, double near = 1) const;

  /// ModRaise: from level 0 to a level above params().depth(). The result has the phase of a plus
  /// q_0 I modulo the larger modulus, where I has small integer coefficients. Its scale and
  /// estimate describe the phase of a alone. It is for bootstrap::Bootstrapper. Throws KeyMissing
  /// without encapsulation keys.
  Ciphertext raise(const Ciphertext& a, int level) const;
  bool has_encapsulation() const;

  // HROTATE: slot i of the result is slot i + steps of a, cyclically
  Ciphertext rotate(const Ciphertext& a, int steps) const;
  Ciphertext conjugate(const Ciphertext& a) const;
  /// a plus its conjugate: twice the real part of every slot. The result counts as real.
  Ciphertext twice_real(const Ciphertext& a, double peak = params::kUnbounded) const;
  Ciphertext automorphism(const Ciphertext& a, std::uint64_t element) const;

  Hoisted hoist(const Ciphertext& a) const;
  Ciphertext rotate_hoisted(const Hoisted& a, int steps) const;
  Extended rotate_extended(const Hoisted& a, int steps) const;  // steps 0: P times the source
  Extended extend(const Ciphertext& a) const;  // P times a
  /// The operand of rotated_sums that stands for rotate_extended(a, steps). For steps 0, `a` needs
  /// only its source.
  Rotation rotation(const Hoisted& a, int steps) const;
  /// RlweOps::rotated_sums over the primes of the rotations' level and of P. The caller computes
  /// the estimates.
  void rotated_sums(std::span<const Rotation> rotations,
                    std::span<const backend::WeightedSum> sums) const;
  /// Division by P.
  Ciphertext reduce(const Extended& a, double peak = params::kUnbounded) const;
  /// Division by P and by one level.
  Ciphertext reduce_rescale(const Extended& a, double peak = params::kUnbounded) const;
  /// sum_k a[k] * diagonals[k]. The diagonals are encoded at `scale` over the level's primes and P,
  /// and have one row or one for each vector of the batch. message and peak: the root mean square
  /// and the largest modulus of their entries.
  Extended multiply_accumulate(std::span<const Extended* const> a,
                               std::span<const ring::Poly* const> diagonals, double scale,
                               double message, double peak) const;
  void add_inplace(Extended& a, const Extended& b) const;
  /// acc += the rotation of a, before the division by P. Only the second part of a is divided by P,
  /// for its key switching.
  void rotate_accumulate(Extended& acc, const Extended& a, int steps) const;
  /// acc += the sum over k of a[k] rotated by steps[k]. If acc is empty, it becomes that sum.
  void rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                         std::span<const int> steps) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace jali::ckks
