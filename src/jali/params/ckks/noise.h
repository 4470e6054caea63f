// The noise of CKKS operations as formulas. A ciphertext has the phase m * scale + e. Variances are
// those of a coefficient of e. The error of a slot then has variance N * var(e) / scale^2.
// Derivations: docs/noise.md.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "jali/params/ckks/estimate.h"
#include "jali/params/ckks_params.h"
#include "jali/params/rlwe_noise.h"

namespace jali::params {

/// log2 of E x^(2k) / E[x^2]^k = (2k - 1)!! for a normal number x, or up to 0.06 more.
double log2_normal_moment(double k);

/// Whether the phase stays below half of a modulus of log_q bits, so that nothing wraps around.
/// This suffices because no coefficient is larger than the largest slot.
bool fits(const Estimate& a, std::size_t n, double scale, double log_q);

/// The error of a slot as comparisons with a range take it, in units of the scaled integers: its
/// bound, or 1024 standard deviations if that is less, as it is after bootstrapping, whose bound
/// says little. kUnbounded stays kUnbounded.
double range_error(const Estimate& a, std::size_t n);

using rlwe::slot_tail;

/// What is known of a vector that a matrix is multiplied by: a diagonal, as it is encoded.
struct DiagonalFacts {
  double message = 0, peak = 0;  // root mean square and largest modulus of its numbers
  bool real = false;
  double density = 1;  // the part of the coefficients that is rounded, with sparse packing
  /// By which factor the root mean square over the rows that are not zero is above that over all:
  /// numbers and their errors lie in these rows, the roundings of diagonals in all.
  double rows = 1;
  /// The roundings of equal diagonals are equal: by which factor the variance of the sum of all
  /// roundings may be above that of independent ones.
  double alike = 1;
};

/// The averages and bounds of the operations. docs/noise.md has the derivations. noise.cpp has the
/// sources of noise, noise_sums.cpp, noise_products.cpp, noise_functions.cpp and
/// noise_bootstrap.cpp what operations make of them. n is the ring degree. The sources themselves
/// are those of every scheme of RLWE (params/rlwe_noise.h).
class NoiseModel {
 public:
  explicit NoiseModel(const ckks::Params& params);

  /// Encryptions, under the secret or the public key, of numbers encoded at `scale` in 2^log_slots
  /// slots. The errors of encoding are included.
  Estimate fresh_secret(const Declared& declared, double scale, int log_slots,
                        const Lineage& lineage = {}, bool real = false) const;
  Estimate fresh_public(const Declared& declared, double scale, int log_slots,
                        const Lineage& lineage = {}, bool real = false) const;
  /// A plaintext operand of these numbers.
  Estimate plaintext(double message, double peak, double scale, int log_slots, bool real) const;
  /// A diagonal of a matrix, encoded at `scale` in 2^log_slots slots.
  Estimate diagonal(const DiagonalFacts& numbers, double scale, int log_slots) const;
  /// Encoding numbers of this root mean square and peak at `scale` in 2^log_slots slots: integers
  /// are rounded, and doubles have 53 bits.
  Noise encoding(double message, double peak, double scale, int log_slots) const;
  /// Encoding one constant of modulus `size` for every slot.
  Noise constant(double size, double scale) const;
  Noise key_switch(int level) const;  // ModUp, the product with the key, and ModDown
  Noise key_product(int level) const;  // key_switch without the rounding of ModDown
  Noise rounding() const;  // of a division of two parts
  Noise square_rounding() const;  // what the division of a third part, that of s^2, adds
  /// The switches to the sparse secret and back in ModRaise, in units of level 0 (see
  /// ckks/raise.cpp).
  Noise encapsulation() const;
  /// Taking the numbers of a to have another scale than theirs. difference: the two scales
  /// subtracted.
  Noise scale_mismatch(const Estimate& a, double difference) const;

  /// The sum. Operands of another lineage count as independent.
  Estimate add(const Estimate& a, const Estimate& b) const;
  /// The difference. The terms of a - a would cancel, and are taken for independent.
  Estimate sub(const Estimate& a, const Estimate& b) const;
  /// a + b for a constant b at `scale`.
  Estimate add_constant(const Estimate& a, std::complex<double> b, double scale) const;
  /// The product of a at scale sa and b at scale sb, neither relinearised nor rescaled. Its error
  /// is in units of sa * sb.
  Estimate multiply(const Estimate& a, double sa, const Estimate& b, double sb) const;
  /// The product of a at scale sa with itself, also if its lineage is not known.
  Estimate square(const Estimate& a, double sa) const;
  /// The product with a constant of modulus factor_abs, encoded as the integer integer_abs. The
  /// caller accounts for the rounding of the constant.
  Estimate multiply_constant(const Estimate& a, double factor_abs, double integer_abs) const;
  Estimate relinearise(const Estimate& a, int level) const;
  Estimate rotate(const Estimate& a, int level, std::uint64_t galois_element) const;
  /// A rotation that is not divided by P yet, as a term of a sum of such. The rounding of the
  /// division is counted when the sum is divided.
  Estimate rotate_term(const Estimate& a, int level) const;
  /// A rotation of such a sum as a term of another: its second part is divided, and switched again.
  Estimate rotate_sum(const Estimate& a, int level) const;
  /// Relinearisation and rescale in one division, so that there is a single rounding.
  Estimate relinearise_rescale(const Estimate& a, int level, double ratio) const;
  /// Division by `ratio`, the product of the dropped primes over the product of the added ones.
  Estimate rescale(const Estimate& a, double ratio) const;

  /// The precision of a decoded slot in bits: -log2 of the standard deviation of the real part of
  /// its error, in message units.
  double precision_bits(const Estimate& a, double scale) const;
  /// The same without the factors that count numbers of unknown lineage, and errors of different
  /// slots, as equal.
  double unshared_bits(const Estimate& a, double scale) const;
  /// The same, and at most 1.5 bits below it what equal and normal numbers leave.
  double expected_bits(const Estimate& a, double scale) const;
  /// The same for numbers and errors that are all independent.
  double independent_bits(const Estimate& a, double scale) const;
  /// A bound on the modulus of the error of every decoded slot, in message units; infinity if none
  /// is known.
  double worst_case_error(const Estimate& a, double scale, int level) const;
  /// A bound on the part of that error which depends on keys or on what was drawn, before decoding,
  /// in message units; infinity if none is known.
  double worst_case_noise(const Estimate& a, double scale, int level) const;
  /// The largest error that a decryption may show before its numbers are taken for wrong: the
  /// bound, or what comparisons with a range take, or the peak.
  double allowed_error(const Estimate& a, double scale, int level) const;

 private:
  rlwe::NoiseSources sources_;
  double tail_ = 0;  // slot_tail for kSourceBits
  std::size_t n_ = 0;
  double sigma_ = 0;
  const ckks::Params* params_ = nullptr;
};

}  // namespace jali::params
