// Derivations and sources: docs/noise.md.
#include "jali/params/noise.h"

#include <cmath>

namespace jali::params {

namespace {

// a b, and 0 where either is: figures that outgrow a double are infinite, and never no number.
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

}  // namespace

NoiseModel::NoiseModel(const CkksParams& params)
    : n_(params.n()),
      h_(2.0 * static_cast<double>(params.n()) / 3.0),
      sigma_(params.error_std()),
      params_(&params) {}

// c0 + c1 s = m + e.
Estimate NoiseModel::fresh_secret(double message) const {
  return {sigma_ * sigma_ + encoding_variance(), message};
}

// c0 + c1 s = m + v e_pk + e0 + e1 s, v and s uniform ternary.
Estimate NoiseModel::fresh_public(double message) const {
  return {sigma_ * sigma_ * (1 + 2 * h_) + encoding_variance(), message};
}

double NoiseModel::encoding_variance() const { return 1.0 / 12; }

// (sum_j lift_j e_j) / P with lift_j uniform in [-D_j / 2, D_j / 2).
double NoiseModel::key_product_variance(int level) const {
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
  return sum * static_cast<double>(n_) * sigma_ * sigma_ / 12;
}

double NoiseModel::key_switch_variance(int level) const {
  return key_product_variance(level) + rescale_variance();
}

// r0 + r1 s, r uniform in [-1/2, 1/2).
double NoiseModel::rescale_variance() const { return (1 + h_) / 12; }

// r2 s^2. (s^2)_k sums N/2 products 2 s_i s_j of variance 4 (2/3)^2: 8N/9 = 4h/3.
double NoiseModel::square_rescale_variance() const {
  return static_cast<double>(n_) * (4 * h_ / 3) / 12;
}

// q_0 / P' and q_0 / P times the noise of a one-digit key, and both roundings: (1 + h_t) / 12 under the
// sparse secret, (1 + h) / 12 under the dense one.
double NoiseModel::encapsulation_variance() const {
  if (!params_->bootstrap()) return 0;
  double log_small = 0;
  for (PrimeIndex i : params_->sparse_p_primes()) {
    log_small += std::log2(static_cast<double>(params_->primes()[i]));
  }
  const double log_q0 = params_->level(0).log_q;
  const double key = static_cast<double>(n_) * sigma_ * sigma_ / 12;
  return key * (std::exp2(2 * (log_q0 - log_small)) + std::exp2(2 * (log_q0 - params_->log_p()))) +
         (1.0 + params_->bootstrap()->weight) / 12 + rescale_variance();
}

Estimate NoiseModel::add(const Estimate& a, const Estimate& b) const {
  return {a.variance + b.variance, std::hypot(a.message, b.message)};
}

// e = m1 e2 + m2 e1 + e1 e2, slot by slot; slots have N times the coefficients' variance.
Estimate NoiseModel::multiply(const Estimate& a, double sa, const Estimate& b, double sb) const {
  const double ma = a.message * sa;
  const double mb = b.message * sb;
  const double variance = times(ma * ma, b.variance) + times(mb * mb, a.variance) +
                          static_cast<double>(n_) * times(a.variance, b.variance);
  return {variance, times(a.message, b.message)};
}

Estimate NoiseModel::multiply_plain(const Estimate& a, double sa, double message, double sb) const {
  return multiply(a, sa, {encoding_variance(), message}, sb);
}

Estimate NoiseModel::multiply_constant(const Estimate& a, double factor_abs,
                                       double integer_abs) const {
  return {times(times(a.variance, integer_abs), integer_abs), times(a.message, factor_abs)};
}

Estimate NoiseModel::relinearise(const Estimate& a, int level) const {
  return {a.variance + key_switch_variance(level), a.message};
}

Estimate NoiseModel::rotate(const Estimate& a, int level) const { return relinearise(a, level); }

Estimate NoiseModel::relinearise_rescale(const Estimate& a, int level, double ratio) const {
  return rescale({a.variance + key_product_variance(level), a.message}, ratio);
}

Estimate NoiseModel::rescale(const Estimate& a, double ratio) const {
  return {a.variance / (ratio * ratio) + rescale_variance(), a.message};
}

// The real part of a slot has half of the slot's variance.
double NoiseModel::precision_bits(const Estimate& a, double scale) const {
  return std::log2(scale) - std::log2(static_cast<double>(n_) * a.variance / 2) / 2;
}

// A slot's error z is circular Gaussian, P(|z| > t) = exp(-t^2 / E|z|^2), E|z|^2 = N var / scale^2;
// over N/2 slots: t^2 = E|z|^2 ln(2) (kappa + log2(N / 2)).
double NoiseModel::worst_case_slot_error(const Estimate& a, double scale,
                                         double log2_inverse_probability) const {
  const double n = static_cast<double>(n_);
  return std::sqrt(n * a.variance * std::log(2.0) * (log2_inverse_probability + std::log2(n / 2))) /
         scale;
}

}  // namespace jali::params
