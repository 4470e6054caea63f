// The explicit evaluator: every homomorphic operation, by hand. See auto_evaluator.h for the one
// that relinearises and rescales by itself.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/ckks/encoder.h"
#include "jali/ckks/types.h"
#include "jali/rlwe/keys.h"

namespace jali::ckks {

/// Key-switch digits of a ciphertext, computed once and used by many rotations.
struct Hoisted {
  std::vector<PrimeIndex> primes;   // of one digit block: the level's primes, then P
  device::Buffer ext;               // digits x primes x batch x N
  const Ciphertext* source = nullptr;  // must outlive this
  backend::ConstView view() const { return {ext.data(), primes, source->batch()}; }
};

/// A rotation times P that is made where it is used, by Evaluator::rotated_sums.
struct Rotation {
  const Ciphertext* source = nullptr;  // must outlive this, as its Hoisted must
  backend::Rotated view;
  double scale = 1;
  Estimate estimate;  // without the factor P
};

/// A ciphertext over Q_level * P, before division by P: sums of rotations need one division only
/// (double hoisting).
struct Extended {
  ParamsPtr params;
  ring::Poly c0, c1;  // over the level's primes, then P; carry a factor P
  int level = 0;
  double scale = 1;
  int log_slots = 0;
  Estimate estimate;  // in units without the factor P
};

/// sum factor a b + sum factor x + constant, of ciphertexts of two parts.
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
};

/// All operations are const and may be used from several threads. Levels of two operands must be
/// equal (drop_to brings one down), scales equal to within 2^-20 relative; violations throw.
class Evaluator {
 public:
  Evaluator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
            std::shared_ptr<const rlwe::EvaluationKeys> keys);
  /// For parameters that with_depth made of `whole`'s, with its keys and engine.
  Evaluator(ParamsPtr part, const Evaluator& whole);
  ~Evaluator();

  const ParamsPtr& params() const;
  const std::shared_ptr<const ring::Ring>& ring() const;
  const Encoder& encoder() const;
  const params::NoiseModel& noise() const;
  /// Whether there is a key for it that serves this level and those below.
  bool has_rotation(int steps, int level = 0) const;
  bool has_galois(std::uint64_t element, int level = 0) const;
  bool has_relinearisation(int level = 0) const;

  Ciphertext copy(const Ciphertext& a) const;
  /// Copies between the host's memory and this evaluator's device. Operations take ciphertexts that
  /// are here; bytes and decryption take those of the host.
  bool is_here(const Ciphertext& a) const;
  Ciphertext bring(const Ciphertext& a) const;
  Ciphertext send_back(const Ciphertext& a) const;

  // HADD
  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  Ciphertext add_plain(const Ciphertext& a, const Plaintext& b) const;
  Ciphertext sub_plain(const Ciphertext& a, const Plaintext& b) const;
  Ciphertext add_scalar(const Ciphertext& a, std::complex<double> b) const;
  void add_inplace(Ciphertext& a, const Ciphertext& b) const;

  // CMULT: scale becomes a.scale * b.scale
  Ciphertext multiply_plain(const Ciphertext& a, const Plaintext& b) const;
  /// round(b * scale) as a constant; complex constants go through X^(N/2).
  Ciphertext multiply_scalar(const Ciphertext& a, std::complex<double> b, double scale) const;
  /// Exact, no scale: by a small integer, or by the imaginary unit.
  Ciphertext multiply_integer(const Ciphertext& a, std::int64_t b) const;
  Ciphertext multiply_i(const Ciphertext& a) const;
  /// One batch after the other; levels, scales and parts must be equal.
  Ciphertext stack(const Ciphertext& a, const Ciphertext& b) const;
  /// Vectors [first, first + count) of the batch.
  Ciphertext vectors(const Ciphertext& a, std::size_t first, std::size_t count) const;

  // HMULT
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const;  // 3 parts
  Ciphertext square(const Ciphertext& a) const;
  Ciphertext relinearise(const Ciphertext& a) const;
  /// One level down; scale divided by the ratio of the levels' moduli.
  Ciphertext rescale(const Ciphertext& a) const;
  /// relinearise then rescale, with one division for both.
  Ciphertext relinearise_rescale(const Ciphertext& a) const;
  Ciphertext multiply_relinearise_rescale(const Ciphertext& a, const Ciphertext& b) const;

  /// The combination made at this level and scale, relinearised and rescaled to the level below, in one
  /// division. Operands may lie higher: factors of products where they have all limbs of the level,
  /// multiples anywhere. A product's scale is that of the sum, or, for a factor of 2, twice that.
  Ciphertext combine_rescale(const Combination& c, int level, double scale) const;

  /// Same message and scale at a lower level.
  Ciphertext drop_to(const Ciphertext& a, int level) const;
  /// Brings `a` to (level, scale), level below a's: one multiplication by a constant and one rescale,
  /// so that scales match to rounding. The constant is an integer, off by at most 2^-20 of itself (of small scales,
  /// by less than the rescale's rounding); where one that starts at level + 1 is off by more than `near`, it starts
  /// at a's level.
  Ciphertext adjust(const Ciphertext& a, int level, double scale, double near = 1) const;

  /// From level 0 to a level above params().depth(): phase + q_0 I modulo the larger modulus, with I
  /// small integers; scale and estimate are of the phase. For bootstrap::Bootstrapper. Throws KeyMissing
  /// without encapsulation keys.
  Ciphertext raise(const Ciphertext& a, int level) const;
  bool has_encapsulation() const;

  // HROTATE: slot i of the result is slot i + steps of a
  Ciphertext rotate(const Ciphertext& a, int steps) const;
  Ciphertext conjugate(const Ciphertext& a) const;
  Ciphertext automorphism(const Ciphertext& a, std::uint64_t element) const;

  Hoisted hoist(const Ciphertext& a) const;
  Ciphertext rotate_hoisted(const Hoisted& a, int steps) const;
  Extended rotate_extended(const Hoisted& a, int steps) const;  // steps 0: P times the source
  Extended extend(const Ciphertext& a) const;                   // P times a
  /// What rotate_extended would make. For steps 0 a Hoisted needs no more than its source.
  Rotation rotation(const Hoisted& a, int steps) const;
  /// RlweOps::rotated_sums over the primes of the rotations' level and of P; estimates are the caller's.
  void rotated_sums(std::span<const Rotation> rotations,
                    std::span<const backend::WeightedSum> sums) const;
  Ciphertext reduce(const Extended& a) const;                   // division by P
  Ciphertext reduce_rescale(const Extended& a) const;           // division by P and one level
  /// sum_k a[k] * diagonal[k], diagonals over the level's primes and P at `scale`; message and peak: of their entries.
  Extended multiply_accumulate(std::span<const Extended* const> a,
                               std::span<const ring::Poly* const> diagonals, double scale,
                               double message, double peak) const;
  void add_inplace(Extended& a, const Extended& b) const;
  /// acc += the rotation of a, before division by P; only a's second part is divided on the way.
  void rotate_accumulate(Extended& acc, const Extended& a, int steps) const;
  /// The same for many; an empty acc becomes their sum.
  void rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                         std::span<const int> steps) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace jali::ckks
