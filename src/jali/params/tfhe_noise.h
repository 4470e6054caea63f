// The noise of TFHE as formulas. Derivations and measurements: docs/math/tfhe-noise.md.
//
// All variances are those of a phase, on a torus of circumference 1: a word x of w bits is the
// number x / 2^w. They are averages over keys and over what encryption draws. Secrets are binary;
// the mean of a bit is 1/2 in the large key.
#pragma once

#include <cstddef>

#include "jali/backend/tfhe_config.h"
#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// What a blind rotation leaves in its accumulator, by cause.
struct RotationNoise {
  double key = 0;  // the errors of the bootstrapping key, times the digits
  double rounding = 0;  // what the digits leave out, times the key bits
  double transform = 0;  // the FFT in double precision, and the rounding of its result to words
  double total() const { return key + rounding + transform; }
};

/// The relative error of a product by FFT in double precision is 2^-53 sqrt(transform_error(N)):
/// the root mean square of its coefficients' errors over that of its coefficients, if its factors
/// are independent and uniform. 4 log2 N bounds what was measured: 12 at N = 512 to 29 at 65536 for
/// transforms of high radix, 36 at N = 512 for plain radix 2 with roots that are off by some units
/// in the last place.
double transform_error(PolynomialSize N);

/// log2(erfc(x)) for x >= 0, also where erfc itself underflows.
double log2_erfc(double x);

class NoiseModel {
 public:
  /// `config` need not be valid for an engine. The errors are TUniform(lwe_noise_bits) in words of
  /// 32 bits, and TUniform(glwe_noise_bits) in words of the torus.
  NoiseModel(const backend::TfheConfig& config, int lwe_noise_bits, int glwe_noise_bits);
  explicit NoiseModel(const Literal& literal);

  /// Encryptions under the small and under the large key.
  double fresh_small() const { return fresh_small_; }
  double fresh_large() const { return fresh_large_; }

  /// Encryptions under the public key, which are encryptions under the large key: e r + e' - e'' S,
  /// with binary S, r in {-1, 0, 1} with E[r^2] = 1/2, and errors e, e', e''.
  double fresh_public() const;
  /// The squared norm, in the unit of bootstrapped(order), that each of `messages` encryptions in
  /// one polynomial has to count with, so that sums count at least the noise that they have. Their
  /// errors are not independent, but (sum |w|)^2 <= messages sum w^2.
  double public_norm2(Order order, std::size_t messages) const;

  /// What an external product of a GLWE ciphertext with a GGSW ciphertext adds, if E[m^2] is
  /// `square` for the message m of the latter. The noise of the GLWE ciphertext itself is
  /// multiplied by m^2.
  RotationNoise external_product(double square) const;
  /// A blind rotation of a table that is not encrypted. An encrypted table adds its own variance.
  RotationNoise blind_rotation() const;
  /// What a key switch adds, from the large to the small key.
  double key_switch() const;
  /// What the rounding of the mask adds in a modulus switch to multiples of 2^log_many / 2N.
  /// compensated: the mean of the secret bits is taken out, as backend::switched does. The rounding
  /// of the body is not in it: it is exact, and log2_p_fail accounts for it as a shift of the box.
  double modulus_switch(int log_many = 0, bool compensated = true) const;
  /// What packing `count` LWE ciphertexts of dimension `from`, with secret bits of mean square
  /// `square`, into the coefficients of one GLWE ciphertext adds to each of them.
  double packing(const Gadget& gadget, LweDimension from, double square, std::size_t count) const;

  /// One result of bootstrapping, as the order's user holds it: large, or switched to the small
  /// key.
  double bootstrapped(Order order) const;
  /// The variance before the rotation, without the rounding of the body, if a linear combination of
  /// freshly bootstrapped ciphertexts whose weights have this squared 2-norm is bootstrapped.
  double before_rotation(Order order, double norm2, int log_many = 0) const;
  /// log2 of the probability that the exponent of a blind rotation leaves its box, if the
  /// combination is as above and the box reaches `half_box` of the torus to either side of a value.
  /// The exponent is the phase in units of u = 2^log_many / 2N, rounded half up, and the box is
  /// half open, [-half_box, half_box). So the phase itself fails at half_box - u/2 and above, and
  /// below -half_box - u/2. The phase is taken to be normal, and the probability is averaged over
  /// the weights of block-binary keys.
  double log2_p_fail(Order order, double norm2, double half_box, int log_many = 0) const;
  /// The largest squared 2-norm for which log2_p_fail is at most `bits`, or 0 if there is none.
  double largest_norm2(Order order, double bits, double half_box, int log_many = 0) const;

 private:
  double digit_variance(const Gadget& gadget) const;
  double dropped_variance(const Gadget& gadget) const;
  double switch_unit(int log_many) const;
  backend::TfheConfig config_;
  double fresh_small_ = 0, fresh_large_ = 0;
};

/// Half the width of a value's box: 2^-(message_bits + carry_bits + 2).
double half_box(const Literal& literal);

/// How many messages a polynomial of a public-key encryption takes: as many as count no more than a
/// bootstrapped ciphertext each (public_norm2), at most N. One always does, because its errors are
/// fewer than those that a rotation adds.
std::size_t public_batch(const Literal& literal);

/// log2 of the probability that bootstrapping a combination of squared 2-norm literal.max_norm2
/// fails.
double log2_p_fail(const Literal& literal, int log_many = 0);

}  // namespace jali::tfhe
