// Noise of CKKS operations as formulas. All figures are for the coefficients' error e of a
// ciphertext, phase = m * scale + e; in the slots the error has variance N * var(e) / scale^2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/params/ckks_params.h"

namespace jali::params {

/// The peak of numbers of which the root mean square alone is declared, in units of that. Of 2^17 Gaussian numbers none is
/// above 8 times their root mean square but with probability 2^-32.
inline constexpr double kPeak = 8;

/// A bound of this size says that nothing is known; bounds do not grow beyond it.
inline constexpr double kUnbounded = 1e300;

/// Each source of noise is beyond its own bound with probability at most 2^-160. A bound on an error that came from 2^32
/// sources holds but with probability 2^-128.
inline constexpr double kSourceBits = 160;

/// What the owner of the numbers declares of them, beforehand and never computed from the data.
struct Declared {
  double magnitude = 1;  // root mean square of the slots
  double peak = kPeak;  // none of them is larger

  Declared() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): the usual declaration is one number
  Declared(double rms) : Declared(rms, kPeak * rms) {}
  Declared(double rms, double largest) : magnitude(rms), peak(largest) {}
};

/// Error that an operation adds, in units of the scaled integers: the variance of a coefficient, and a bound on every
/// slot.
struct Noise {
  double variance = 0;
  double bound = 0;
  /// Whether it depends on keys or on what was drawn, and not on the numbers alone as roundings of encodings do.
  bool random = true;
};

/// Which operands of a sum or a product are the same numbers: averages take all others for independent.
struct Lineage {
  std::uint64_t root = 0;   // equal: powers of the same numbers, up to factors; 0: not known
  std::uint64_t turn = 1;   // the Galois element that moved them
  std::uint32_t power = 1;  // of the root
  std::uint32_t degree = 1;  // of the root, in numbers that were encrypted
  std::uint64_t inputs = 0;  // a bit, of 64, for each of those
};

/// Of numbers that were just encrypted or read.
Lineage lineage_of(std::uint64_t root);

/// That of clear numbers: others have another root mean square and peak.
Lineage lineage_of(double message, double peak);

/// What is publicly known of a ciphertext. It travels with it in the clear: it depends on declared
/// magnitudes and on the operations alone, never on the encrypted data.
struct Estimate {
  double variance = 0;  // of one coefficient of the error, in scaled integers, expected
  double message = 1;   // root mean square of the slots, in message units, expected
  double peak = kUnbounded;  // no slot of the message is larger, in message units
  double error = kUnbounded;  // no slot of the error is larger, in units of the scaled integers
  double noise = kUnbounded;  // nor of the part of it that depends on keys or on what was drawn
  /// Whether all of this was worked out here. What was read from bytes is the sender's word.
  bool derived = true;
  Lineage lineage{};
  /// So many times larger message and variance are if the terms of sums are equal numbers and the factors of powers
  /// normal ones. What is promised of the precision is at most 1.5 bits above what that would leave.
  double message_spread = 1, variance_spread = 1;
  bool real = false;  // whether the slots of the message are known to be real numbers

  Estimate& operator+=(const Noise& noise);
  /// What holds for both: of a batch.
  void cover(const Estimate& other);
};

/// Whether the phase stays below half of a modulus of log_q bits, so that nothing wraps around: no coefficient is larger
/// than the largest slot.
bool fits(const Estimate& a, std::size_t n, double scale, double log_q);

/// What the error of a slot is taken to be where ranges are compared, in units of the scaled integers: its bound, or 1024
/// standard deviations if that is less, as it is after bootstrapping, whose bound says little. kUnbounded stays kUnbounded.
double range_error(const Estimate& a, std::size_t n);

/// sqrt(N) times this bounds every slot of a polynomial whose coefficients are independent and sub-Gaussian of variance
/// proxy 1, but with probability 2^-bits.
double slot_tail(int log_n, double bits);

/// Averages and bounds; each says the derivation it implements. `n` is the ring degree, `h` the
/// expected number of non-zero coefficients of the secret (2N/3, uniform ternary).
class NoiseModel {
 public:
  explicit NoiseModel(const ckks::Params& params);

  /// Encryptions of numbers encoded at `scale` in 2^log_slots slots; the encoding's errors are counted.
  Estimate fresh_secret(const Declared& declared, double scale, int log_slots) const;
  Estimate fresh_public(const Declared& declared, double scale, int log_slots) const;
  /// The integers that numbers of this root mean square and peak are encoded to, at `scale` in 2^log_slots slots: they
  /// are rounded, and doubles hold 53 bits.
  Noise encoding(double message, double peak, double scale, int log_slots) const;
  /// A constant for every slot.
  Noise constant(double size, double scale) const;
  Noise key_switch(int level) const;   // mod_up, product, ModDown by P
  Noise key_product(int level) const;  // the same without the rounding of ModDown
  Noise rounding() const;              // of a division, two parts
  Noise square_rounding() const;       // what a third part (of s^2) adds to that
  /// What ModRaise adds in the units of level 0: to the sparse secret and back (see ckks/raise.cpp).
  Noise encapsulation() const;
  /// Of numbers that are taken to lie at another scale than theirs: `difference` of the two.
  Noise scale_mismatch(double message, double peak, double difference) const;

  /// Of operands that are independent, or of one lineage.
  Estimate add(const Estimate& a, const Estimate& b) const;
  /// a, b at scales sa, sb; no relinearisation, no rescale: error in units of sa * sb.
  Estimate multiply(const Estimate& a, double sa, const Estimate& b, double sb) const;
  /// Exact constant: no rounding noise beyond that of the constant, which the caller tracks.
  Estimate multiply_constant(const Estimate& a, double factor_abs, double integer_abs) const;
  Estimate relinearise(const Estimate& a, int level) const;
  Estimate rotate(const Estimate& a, int level, std::uint64_t galois_element) const;
  /// Both with the one division of merged ModDown and rescale: a single rounding term.
  Estimate relinearise_rescale(const Estimate& a, int level, double ratio) const;
  /// Division by `ratio` (a real number: product of dropped over product of added primes).
  Estimate rescale(const Estimate& a, double ratio) const;

  /// Bits of precision of a slot: -log2 of the standard deviation of its (real) error, once decoded.
  double precision_bits(const Estimate& a, double scale) const;
  /// A bound on the modulus of every slot's error, once decoded, in message units; infinity where none is known.
  double worst_case_error(const Estimate& a, double scale, int level) const;
  /// The same of its part that depends on keys or on what was drawn, before decoding.
  double worst_case_noise(const Estimate& a, double scale, int level) const;

 private:
  double tail_ = 0;  // slot_tail for kSourceBits
  std::size_t n_ = 0;
  double h_ = 0;
  double sigma_ = 0;
  const ckks::Params* params_ = nullptr;
};

}  // namespace jali::params
