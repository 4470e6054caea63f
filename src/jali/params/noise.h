// The noise of CKKS operations as formulas. A ciphertext has the phase m * scale + e. Variances are
// those of a coefficient of e. The error of a slot then has variance N * var(e) / scale^2.
// Derivations: docs/noise.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/params/ckks_params.h"

namespace jali::params {

/// If only the root mean square of numbers is declared, their peak is taken to be this many times
/// as large. The probability that one of 2^17 Gaussian numbers is above 8 times their root mean
/// square is 2^-32.
inline constexpr double kPeak = 8;

/// A bound of this size says that nothing is known. Bounds do not grow beyond it.
inline constexpr double kUnbounded = 1e300;

/// Each source of noise is beyond its own bound with probability at most 2^-160. So a bound on an
/// error that comes from 2^32 sources fails with probability at most 2^-128.
inline constexpr double kSourceBits = 160;

/// What the owner of the numbers declares about them. It is declared beforehand and never computed
/// from the data.
struct Declared {
  double magnitude = 1;  // root mean square of the slots
  double peak = kPeak;  // no slot has a larger modulus
  /// Whether the magnitude is that of examples, of which other numbers may have more. Encryption
  /// then holds them to the peak alone.
  bool calibrated = false;

  Declared() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): the usual declaration is one number
  Declared(double rms) : Declared(rms, kPeak * rms) {}
  Declared(double rms, double largest)
      : magnitude(rms + 0.0), peak(largest + 0.0) {}  // -0 becomes 0, as bytes have it
};

/// The error that an operation adds, in units of the scaled integers: the variance of a
/// coefficient, and a bound on the modulus of every slot.
struct Noise {
  double variance = 0;
  double bound = 0;
  /// Whether it depends on keys or on what was drawn. The roundings of encodings depend on the
  /// numbers alone.
  bool random = true;
  /// How many slots may have the same error, as equal numbers do after a product with a constant
  /// that was rounded. If it is 1, the errors of different slots are uncorrelated.
  double equal = 1;
  /// The variance in a claim, if that is more.
  double claimed = 0;
};

/// log2 of E x^(2k) / E[x^2]^k = (2k - 1)!! for a normal number x, or up to 0.06 more.
double log2_normal_moment(double k);

/// Says which operands of a sum or a product are the same numbers. Averages take all others for
/// independent.
struct Lineage {
  /// If two roots are equal, both are powers of the same numbers, up to factors. 0: not known.
  std::uint64_t root = 0;
  std::uint64_t turn = 1;  // the Galois element that moved the numbers
  std::uint32_t power = 1;  // the power of the root that they are
  /// The degree of the root, or of numbers of unknown root, as a polynomial in the numbers that
  /// were encrypted; kAnyDegree at most.
  std::uint32_t degree = 1;
  std::uint64_t inputs = 0;  // which numbers these are: each sets one of 64 bits
  /// Whether it is a term of a circuit that says itself what the errors of its terms have in
  /// common. Sums and products take it for independent of other numbers. What is of unknown lineage
  /// otherwise may be the same numbers as any other.
  bool term = false;
};

/// The degree of numbers of which no more is known than their root mean square and peak, such as
/// the results of a matrix, which may gather its input in few numbers. A claim counts each of them
/// as the largest that these two allow.
inline constexpr std::uint32_t kAnyDegree = 1 << 16;

/// The lineage of a term.
Lineage lineage_of_term();

/// The lineage of numbers of this degree, kAnyDegree at most, that may be the same as any others.
Lineage lineage_of_unknown(std::uint64_t degree);

/// The lineage of numbers that were just encrypted or read.
Lineage lineage_of(std::uint64_t root);

/// Whether these are numbers of two different encryptions. Their bits may be the same by chance.
bool apart(const Lineage& a, const Lineage& b);

/// A lineage by which numbers of unknown root are known to be the same as themselves. It has their
/// degree and no inputs.
Lineage lineage_of_itself(const Lineage& unknown);

/// The lineage of a result of a recorded function. example: of its result when it was recorded.
/// inputs: of what it was run with.
Lineage lineage_of_result(const Lineage& example, std::span<const Lineage* const> inputs);

/// The degree of numbers as a polynomial in those that were encrypted, as far as it is known;
/// kAnyDegree at most.
std::uint32_t degree_of(const Lineage& lineage);

/// The lineage of clear numbers. They are told apart by their root mean square and peak.
Lineage lineage_of(double message, double peak);

/// Averages as a claim takes them. `principal` is the largest eigenvalue of the covariance matrix
/// of the errors of the slots, in the unit of `variance`: it is equal to the variance if they are
/// uncorrelated, and k times as large if k slots have the same error. A sum of slots with weights w
/// has a variance of at most |w|^2 principal, and at most |w|_1^2 variance.
struct Claim {
  double message = 0, variance = 0, principal = 0;

  /// The largest variance of a sum of k slots.
  double of_sum(double k) const;
};

/// What is publicly known about a ciphertext. It travels with the ciphertext in the clear, because
/// it depends only on declared magnitudes and on the operations, never on the encrypted data.
struct Estimate {
  double variance = 0;  // expected, of one coefficient of the error, in scaled integers
  double message = 1;  // expected root mean square of the slots, in message units
  double peak = kUnbounded;  // bound on every slot of the message, in message units
  double error = kUnbounded;  // bound on every slot of the error, in units of the scaled integers
  double noise = kUnbounded;  // the same for the part that depends on keys or on what was drawn
  /// Whether all of this was computed in this process. If it was read from bytes, it is what the
  /// sender claims.
  bool derived = true;
  Lineage lineage{};
  /// By which factors message and variance would be larger if the terms of sums were equal and the
  /// bases of powers normal.
  double message_spread = 1, variance_spread = 1;
  bool real = false;  // whether the slots of the message are known to be real numbers
  /// By which further factors they would be larger if numbers of unknown lineage were equal and
  /// errors of different slots were, too, as far as they may be. The precision that is promised is
  /// what all these factors leave.
  double message_shared = 1, variance_shared = 1;
  double principal = 1;  // by which factor a claim's `principal` is above its variance

  /// The averages with all factors.
  Claim claim() const;
  /// The largest modulus that one of `slots` numbers has: the peak, or all that the root mean
  /// square of a claim allows.
  double claimed_largest(double slots) const;
  /// Sets the further factors and `principal`. A claim below the averages with spreads is raised to
  /// these.
  void set_claim(const Claim& claim);
  /// Sets the claim of a sum of `count` slots of x, of which `terms` hold numbers other than zero.
  /// Every slot may have the same error. The variance is that of independent errors, and what it
  /// has more than they leave is that of key switches. most: a bound on the variance without these,
  /// if the caller knows one.
  void claim_sum(const Estimate& x, double count, double terms, double most = kUnbounded);

  Estimate& operator+=(const Noise& noise);
  /// Makes the estimate hold for both this and the other ciphertext. A batch has one estimate.
  void cover(const Estimate& other);
};

/// Whether the phase stays below half of a modulus of log_q bits, so that nothing wraps around.
/// This suffices because no coefficient is larger than the largest slot.
bool fits(const Estimate& a, std::size_t n, double scale, double log_q);

/// The error of a slot as comparisons with a range take it, in units of the scaled integers: its
/// bound, or 1024 standard deviations if that is less, as it is after bootstrapping, whose bound
/// says little. kUnbounded stays kUnbounded.
double range_error(const Estimate& a, std::size_t n);

/// A factor t such that every slot of a polynomial whose coefficients are independent and
/// sub-Gaussian of variance proxy 1 is at most t sqrt(N), except with probability 2^-bits.
double slot_tail(int log_n, double bits);

/// The averages and bounds of the operations. noise.cpp and docs/noise.md have the derivations. n
/// is the ring degree. h is the expected number of non-zero coefficients of the secret, 2N/3
/// because it is uniform ternary.
class NoiseModel {
 public:
  explicit NoiseModel(const ckks::Params& params);

  /// Encryptions, under the secret or the public key, of numbers encoded at `scale` in 2^log_slots
  /// slots. The errors of encoding are included.
  Estimate fresh_secret(const Declared& declared, double scale, int log_slots) const;
  Estimate fresh_public(const Declared& declared, double scale, int log_slots) const;
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
  /// The product of a at scale sa and b at scale sb, neither relinearised nor rescaled. Its error
  /// is in units of sa * sb.
  Estimate multiply(const Estimate& a, double sa, const Estimate& b, double sb) const;
  /// The product with a constant of modulus factor_abs, encoded as the integer integer_abs. The
  /// caller accounts for the rounding of the constant.
  Estimate multiply_constant(const Estimate& a, double factor_abs, double integer_abs) const;
  Estimate relinearise(const Estimate& a, int level) const;
  Estimate rotate(const Estimate& a, int level, std::uint64_t galois_element) const;
  /// Relinearisation and rescale in one division, so that there is a single rounding.
  Estimate relinearise_rescale(const Estimate& a, int level, double ratio) const;
  /// Division by `ratio`, the product of the dropped primes over the product of the added ones.
  Estimate rescale(const Estimate& a, double ratio) const;

  /// The precision of a decoded slot in bits: -log2 of the standard deviation of the real part of
  /// its error, in message units.
  double precision_bits(const Estimate& a, double scale) const;
  /// A bound on the modulus of the error of every decoded slot, in message units; infinity if none
  /// is known.
  double worst_case_error(const Estimate& a, double scale, int level) const;
  /// A bound on the part of that error which depends on keys or on what was drawn, before decoding,
  /// in message units; infinity if none is known.
  double worst_case_noise(const Estimate& a, double scale, int level) const;

 private:
  double tail_ = 0;  // slot_tail for kSourceBits
  std::size_t n_ = 0;
  double h_ = 0;
  double sigma_ = 0;
  const ckks::Params* params_ = nullptr;
};

}  // namespace jali::params
