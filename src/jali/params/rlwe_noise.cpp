#include "jali/params/rlwe_noise.h"

#include <cmath>
#include <numbers>

namespace jali::rlwe {

// A slot is z = sum_i c_i zeta^i with zeta of order 2N. For any direction a, sum_i Re(exp(i a)
// zeta^i)^2 = N / 2. If the c_i are independent and sub-Gaussian of variance proxy 1, the component
// of z in this direction is therefore above t with probability at most exp(-t^2 / N). In one of
// sixteen directions the component is at least cos(pi / 16) |z|, so
//   P(some |slot| > tail sqrt(N)) <= 16 (N / 2) exp(-tail^2 cos^2(pi / 16)) = 2^-bits.
// The variance proxy of uniform ternary numbers, of centred binomial ones and of roundings uniform
// in [-1/2, 1/2) is their variance.
double slot_tail(int log_n, double bits) {
  return std::sqrt(std::log(2.0) * (bits + 3 + log_n)) / std::cos(std::numbers::pi / 16);
}

// P(some |x| > g) <= 2 N exp(-g^2 / 2).
double coefficient_tail(int log_n, double bits) {
  return std::sqrt(2 * std::log(2.0) * (bits + 1 + log_n));
}

NoiseSources::NoiseSources(const Params& params)
    : tail_(slot_tail(params.log_n(), kSourceBits)),
      coefficient_tail_(coefficient_tail(params.log_n(), kSourceBits)),
      n_(params.n()),
      h_(2.0 * static_cast<double>(params.n()) / 3.0),
      sigma_(params.error_std()),
      params_(&params) {}

// Centred binomial numbers with k = 21 are at most 21 (random::sample_error).
NoiseSource NoiseSources::error() const {
  return {sigma_ * sigma_, tail_ * sigma_ * std::sqrt(static_cast<double>(n_)), 21};
}

// v e_pk + e1 s, with v and s uniform ternary. A slot of a product is the product of two slots,
// each of which is within its own bound. A coefficient of v e_pk is, for given v, a sum of errors
// with weights of which at most N are not zero, and none is above 1.
NoiseSource NoiseSources::public_key() const {
  const double n = static_cast<double>(n_);
  return {2 * sigma_ * sigma_ * h_, 2 * tail_ * tail_ * sigma_ * std::sqrt(n * h_),
          2 * coefficient_tail_ * sigma_ * std::sqrt(n)};
}

// The error is (sum_j lift_j e_j) / P with lift_j uniform in [-D_j / 2, D_j / 2). For given lifts,
// a slot is a sum of the slots of e_j, weighted with the slots of lift_j. A weight is at most tail
// sqrt(N / 12) D_j, and the sum is within tail times its standard deviation for these weights. For
// a coefficient, the weights are coefficients of lift_j, of at most D_j / 2, whose squares are at
// most three times those of the average.
NoiseSource NoiseSources::key_product(int level) const {
  const Level& l = params_->level(level);
  double sum = 0;
  std::size_t i = 0;
  for (std::uint32_t limbs : l.digit_limbs) {
    double log_digit = 0;
    for (std::uint32_t k = 0; k < limbs; ++k, ++i) {
      log_digit += std::log2(static_cast<double>(params_->primes()[l.primes[i]]));
    }
    sum += std::exp2(2 * (log_digit - params_->log_p()));
  }
  const double n = static_cast<double>(n_), variance = sum * n * sigma_ * sigma_ / 12;
  return {variance, tail_ * tail_ * std::sqrt(n * variance),
          coefficient_tail_ * std::sqrt(3 * variance)};
}

NoiseSource NoiseSources::key_switch(int level) const {
  const NoiseSource product = key_product(level), rounded = rounding();
  return {product.variance + rounded.variance, product.slot + rounded.slot,
          product.coefficient + rounded.coefficient};
}

// The error is r0 + r1 s, with r0 and r1 uniform in [-1/2, 1/2). A coefficient of r1 s is, for
// given s, a sum of at most N roundings.
NoiseSource NoiseSources::rounding() const {
  const double one = tail_ * std::sqrt(static_cast<double>(n_) / 12);
  return {(1 + h_) / 12, one * (1 + tail_ * std::sqrt(h_)),
          0.5 + coefficient_tail_ * std::sqrt(static_cast<double>(n_) / 12)};
}

// The error is r2 s^2. Coefficient k of s^2 is a sum of N/2 products 2 s_i s_j, each of variance 4
// (2/3)^2, so its variance is 8N/9 = 4h/3. A slot of s^2 is the square of a slot of s. No
// coefficient of a polynomial is larger than its largest slot.
NoiseSource NoiseSources::square_rounding() const {
  const double n = static_cast<double>(n_);
  const double slot = tail_ * std::sqrt(n / 12) * tail_ * tail_ * h_;
  return {n * (4 * h_ / 3) / 12, slot, slot};
}

}  // namespace jali::rlwe
