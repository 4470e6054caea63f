// Noise of CKKS operations as formulas. All figures are for the coefficients' error e of a
// ciphertext, phase = m * scale + e; in the slots the error has variance N * var(e) / scale^2.
#pragma once

#include <cstddef>

#include "jali/params/ckks_params.h"

namespace jali::params {

/// So many times the declared magnitude is the most that a number may be where parameters bootstrap. Of 2^17 Gaussian
/// numbers none is above 8 times their root mean square but with probability 2^-32.
inline constexpr double kPeak = 8;

/// What is publicly known of a ciphertext. It travels with it in the clear: it depends on declared
/// magnitudes and on the operations alone, never on the encrypted data.
struct Estimate {
  double variance = 0;  // of one coefficient of the error, in units of the scaled integers
  double message = 1;   // root mean square of the slots, in message units
};

/// Average-case formulas; each says the derivation it implements. `n` is the ring degree, `h` the
/// expected number of non-zero coefficients of the secret (2N/3, uniform ternary).
class NoiseModel {
 public:
  explicit NoiseModel(const CkksParams& params);

  Estimate fresh_secret(double message) const;  // secret-key encryption, plus encoding
  Estimate fresh_public(double message) const;  // public-key encryption, plus encoding
  double encoding_variance() const;  // rounding of an encoded plaintext: 1/12
  double key_switch_variance(int level) const;  // mod_up, product, ModDown by P
  double key_product_variance(int level) const;  // the same without the rounding of ModDown
  double rescale_variance() const;  // rounding term, two parts: (1 + h) / 12
  /// What a third part (of s^2) adds to that: N Var((s^2)_k) / 12.
  double square_rescale_variance() const;
  /// What ModRaise adds in the units of level 0: to the sparse secret and back (see ckks/raise.cpp).
  double encapsulation_variance() const;
  Estimate add(const Estimate& a, const Estimate& b) const;
  /// a, b at scales sa, sb; no relinearisation, no rescale: error in units of sa * sb.
  Estimate multiply(const Estimate& a, double sa, const Estimate& b, double sb) const;
  /// Plaintext with slots of root mean square `message`, encoded at scale sb with rounding.
  Estimate multiply_plain(const Estimate& a, double sa, double message, double sb) const;
  /// Exact constant: no rounding noise beyond that of the constant, which the caller tracks.
  Estimate multiply_constant(const Estimate& a, double factor_abs, double integer_abs) const;
  Estimate relinearise(const Estimate& a, int level) const;
  Estimate rotate(const Estimate& a, int level) const;
  /// Both with the one division of merged ModDown and rescale: a single rounding term.
  Estimate relinearise_rescale(const Estimate& a, int level, double ratio) const;
  /// Division by `ratio` (a real number: product of dropped over product of added primes).
  Estimate rescale(const Estimate& a, double ratio) const;

  /// Bits of precision of a slot: -log2 of the standard deviation of its (real) error.
  double precision_bits(const Estimate& a, double scale) const;
  /// A bound on |slot error| that fails with probability below 2^-log2_inverse_probability.
  double worst_case_slot_error(const Estimate& a, double scale,
                               double log2_inverse_probability) const;

 private:
  std::size_t n_ = 0;
  double h_ = 0;
  double sigma_ = 0;
  const CkksParams* params_ = nullptr;
};

}  // namespace jali::params
