// The sources of noise of every scheme of RLWE, in units of the phase: errors of encryptions,
// roundings of divisions, and key switches. Derivations: docs/noise.md.
#pragma once

#include <cstddef>

#include "jali/params/rlwe_params.h"

namespace jali::rlwe {

/// Each source of noise is beyond its own bound with probability at most 2^-160. So a bound on an
/// error that comes from 2^32 sources fails with probability at most 2^-128.
inline constexpr double kSourceBits = 160;

/// A factor t such that every slot of a polynomial whose coefficients are independent and
/// sub-Gaussian of variance proxy 1 is at most t sqrt(N), except with probability 2^-bits. A slot
/// is the polynomial's value at a root of X^N + 1.
double slot_tail(int log_n, double bits);

/// A factor g such that each of N sub-Gaussian numbers of variance proxy 1 is at most g, except
/// with probability 2^-bits.
double coefficient_tail(int log_n, double bits);

/// One source. The variance is that of a coefficient; the bounds are on the modulus of every slot,
/// and on that of every coefficient.
struct NoiseSource {
  double variance = 0, slot = 0, coefficient = 0;
};

/// The sources for parameters, which must outlive this. n is the ring degree. h is the expected
/// number of non-zero coefficients of the secret, 2N/3 because it is uniform ternary.
class NoiseSources {
 public:
  explicit NoiseSources(const Params& params);

  double tail() const { return tail_; }  // slot_tail for kSourceBits
  NoiseSource error() const;  // of an encryption under the secret key
  NoiseSource public_key() const;  // what an encryption under the public key adds to that
  NoiseSource key_product(int level) const;  // a key switch without the rounding of ModDown
  NoiseSource key_switch(int level) const;  // ModUp, the product with the key, and ModDown
  NoiseSource rounding() const;  // of a division of two parts
  NoiseSource square_rounding() const;  // what the division of a third part, that of s^2, adds

 private:
  double tail_ = 0, coefficient_tail_ = 0;
  std::size_t n_ = 0;
  double h_ = 0;
  double sigma_ = 0;
  const Params* params_ = nullptr;
};

}  // namespace jali::rlwe
