// What is known of a ciphertext's numbers and of its error, and the rules by which operations and
// circuits change it. Only the noise model, params/estimate* and params/noise*, writes an Estimate:
// everything else reads it and calls these rules (tools/check_noise.py). docs/noise.md derives
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/params/ckks/lineage.h"
#include "jali/params/rlwe_noise.h"

namespace jali::params {

/// If only the root mean square of numbers is declared, their peak is taken to be this many times
/// as large. The probability that one of 2^17 Gaussian numbers is above 8 times their root mean
/// square is 2^-32.
inline constexpr double kPeak = 8;

/// A bound of this size says that nothing is known. Bounds do not grow beyond it.
inline constexpr double kUnbounded = 1e300;

using rlwe::kSourceBits;

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

/// Averages as a claim takes them. `principal` is the largest eigenvalue of the covariance matrix
/// of the errors of the slots, in the unit of `variance`: it is equal to the variance if they are
/// uncorrelated, and k times as large if k slots have the same error. A sum of slots with weights w
/// has a variance of at most |w|^2 principal, and at most |w|_1^2 variance.
struct Claim {
  double message = 0, variance = 0, principal = 0;

  /// The largest variance of a sum of k slots.
  double of_sum(double k) const;
};

/// What a sender says of the ciphertext in its bytes.
struct Received {
  double variance = 0, message = 0, peak = 0, error = 0, noise = 0;
  double principal = 1;
  bool real = false;
  Lineage lineage{};
};

/// The errors that bootstrapping adds to those of its circuit. Variances are those of a coefficient
/// of the result, in scaled integers; bounds hold for every slot.
struct BootstrapNoise {
  double sine = 0;  // the variance of the sine's error, as it is expected
  double sine_of_real = 0;  // the same if the numbers are real, for which it is larger
  double sine_claimed = 0;  // the same for the largest numbers that the claim allows
  double reduction = 0;  // a bound on the error of the modular reduction
  double whole = 0;  // a bound on the whole error
  double passed = 1;  // the factor by which the error of the input comes through
  bool drops_imaginary = false;  // so that the error that is left is real
  double slots = 1;
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

  // --- where estimates come from (estimate.cpp) ---

  /// What bytes say. It is the sender's word, so it is not derived.
  static Estimate received(const Received& from);
  /// Numbers up to `peak` and no error: what is known before a result is computed.
  static Estimate of_peak(double peak);

  // --- averages and claims (estimate.cpp) ---

  /// The averages with all factors.
  Claim claim() const;
  /// The largest modulus that one of `slots` numbers has: the peak, or all that the root mean
  /// square of a claim allows.
  double claimed_largest(double slots) const;
  /// Whether the claim is what the spreads leave, and the errors of slots are uncorrelated.
  bool is_plain() const;

  /// Adds the error of an operation.
  Estimate& operator+=(const Noise& noise);
  /// Makes the estimate hold for both this and the other ciphertext. A batch has one estimate.
  void cover(const Estimate& other);
  /// Nothing bounds the error any more, because the numbers may have left their level.
  void lose_bounds();

  // --- what the caller says (estimate.cpp) ---

  /// The caller declares the size of the numbers. A peak below the known one is the caller's word,
  /// and so is the noise of all products from here on.
  void declare(const Declared& declared);
  /// The caller declares the standard deviation of the error of a complex slot, of n coefficients.
  void declare_deviation(double deviation, std::size_t n);
  /// Some of it rests on the caller's word.
  void mark_claimed() { derived = false; }

  // --- what is known of the numbers beyond what operations add up (estimate.cpp) ---

  /// No slot is larger.
  void bound_peak(double most);
  /// No slot is larger, and so the root mean square is not, either.
  void bound_numbers(double most);
  /// The root mean square is no larger than the peak.
  void bound_message();
  /// Every number is a sum of `terms` numbers of x.
  void bound_terms(const Estimate& x, double terms);
  /// The result of an operation on a and on other numbers, or on factors, that are real or not.
  void set_real(const Estimate& a, bool other_is_real);
  /// It has the numbers of x, and an error of its own.
  void set_numbers_of(const Estimate& x);
  /// The circuit knows how large the numbers are, whatever the operations added up.
  void set_size(double root_mean_square, double largest);
  /// A term of a circuit that says itself what the errors of its terms have in common.
  void set_term();
  /// After the circuit of such terms.
  void end_term();
  /// Numbers of this degree that may be the same as any others.
  void set_unknown(std::uint64_t degree = 1);
  /// Numbers of unknown root are the same as themselves.
  void set_itself();
  /// It is that of a recorded function's result when it was recorded, and becomes that of a result
  /// for these inputs.
  void set_result_of(std::span<const Estimate* const> inputs);

  // --- sums (noise_sums.cpp) ---

  /// A sum of `count` slots of x, of which `terms` hold numbers other than zero. before: x as it
  /// was before it was rescaled for the sum.
  void sum_of_slots(const Estimate& x, const Estimate& before, double count, double terms);
  /// A sum of `count` slots of x that is not yet divided. variance: see claim_sum.
  void sum_of_slots(const Estimate& x, double count, double variance);
  /// A finished sum of `count` slots of x.
  void bound_sum(const Estimate& x, double count);
  /// Copies: every slot is the sum of `count` slots of x, of which one holds a number and the
  /// others zeros.
  void copies_of(const Estimate& x, double count);
  /// The numbers of x in other slots, by sums in which they never overlap.
  void moved(const Estimate& x);
  /// a + conj(a).
  void twice_real_of(const Estimate& a);
  /// a + i b for the estimate of the sum: the numbers lie in real and imaginary parts.
  void pair_of(const Estimate& a, const Estimate& b);
  /// Numbers were added in some slots. more: the square of their root mean square there less that
  /// over all slots.
  void added_where(double more);
  /// Numbers other than zero were multiplied in one of every `left` slots.
  void left_where(double left);
  /// The average over the rows of a matrix that has `factor` times the average of all slots.
  void average_of_rows(double factor);
  /// The sum of all products with the diagonals of a matrix. root_mean_square and largest: bounds
  /// on its numbers. principal_by, uneven: by which factors its claim is above the sum's.
  void rows(double largest, double root_mean_square, double principal_by, double uneven);

  // --- functions (noise_functions.cpp) ---

  /// Where a vector has no numbers, `filling` was put. It was the estimate of x before.
  void filled(const Estimate& x, double filling);
  /// The numbers of x lie in [low, high], and the other slots hold no more than `rest`. A
  /// polynomial is made for numbers up to `reach`. Outside of its interval it multiplies noise by
  /// anything, so that a smaller interval than [-x.peak, x.peak] is the caller's word.
  void within(const Estimate& x, double low, double high, double rest, double reach);
  /// The numbers were mapped to [-1, 1].
  void within_unit();
  /// A Chebyshev polynomial of numbers in [-1, 1], or of larger ones up to which it is at most
  /// `largest`.
  void chebyshev_term(double largest);
  /// The remainder of a modular reduction, which is not divided by 2 pi yet. The variance is that
  /// of a coefficient, the bounds are those of a slot.
  void remainder(double variance_left, double noise_left, double error_left);

  // --- bootstrapping (noise_bootstrap.cpp) ---

  /// The numbers of x and multiples of the modulus, after ModRaise.
  void raised(double root_mean_square, double largest);
  /// What is expected of a circuit's error is far below the worst case, which release goes on to
  /// use.
  void expect_error(double bound);
  /// The next bootstrapping measures the error, and removes it.
  void measured();
  /// What is left to measure, enlarged. claimed: by which factor a claim is above what is expected.
  void left_to_measure(double root_mean_square, double largest, double claimed);
  /// A sum of measurements: errors that were enlarged are known by deviations, which no bound for
  /// release may rest on.
  void lose_noise();
  /// The result, whose estimate is that of the circuit, for an input x.
  void bootstrapped(const Estimate& x, const BootstrapNoise& added);

  // --- for the rules themselves (estimate.cpp, noise_sums.cpp) ---

  /// Sets the further factors and `principal`. A claim below the averages with spreads is raised to
  /// these.
  void set_claim(const Claim& claim);
  /// Sets the claim of a sum of `count` slots of x, of which `terms` hold numbers other than zero.
  /// Every slot may have the same error. The variance is that of independent errors, and what it
  /// has more than they leave is that of key switches. most: a bound on the variance without these,
  /// if the caller knows one.
  void claim_sum(const Estimate& x, double count, double terms, double most = kUnbounded);
};

}  // namespace jali::params
