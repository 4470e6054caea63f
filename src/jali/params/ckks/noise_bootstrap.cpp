// Bootstrapping: the switches of ModRaise, the numbers behind it, and the result.
#include <algorithm>
#include <cmath>

#include "jali/params/ckks/noise.h"

namespace jali::params {

// The keys to the sparse secret and back have one digit. Their noise counts q_0 / P' and q_0 / P
// times. Their ModDowns add (1 + h_t) / 12 under the sparse secret, which has weight h_t, and (1 +
// h) / 12 under the dense one. A slot of the sparse secret is at most its weight.
Noise NoiseModel::encapsulation() const {
  if (!params_->bootstrap()) return {};
  double log_small = 0;
  for (PrimeIndex i : params_->sparse_p_primes()) {
    log_small += std::log2(static_cast<double>(params_->primes()[i]));
  }
  const double log_q0 = params_->level(0).log_q, weight = params_->bootstrap()->weight;
  const double n = static_cast<double>(n_), key = n * sigma_ * sigma_ / 12;
  const double small = std::exp2(log_q0 - log_small), large = std::exp2(log_q0 - params_->log_p());
  const Noise dense = rounding();
  return {key * (small * small + large * large) + (1 + weight) / 12 + dense.variance,
          tail_ * tail_ * std::sqrt(n * key) * (small + large) +
              tail_ * std::sqrt(n / 12) * (1 + weight) + dense.bound};
}

// They are other numbers than those of x, and differ from each other.
void Estimate::raised(double root_mean_square, double largest) {
  set_size(root_mean_square, largest);
  lineage = {};
  message_spread = variance_spread = 1;
  set_claim({});
}

void Estimate::expect_error(double bound) {
  noise = std::max(noise, error);
  error = std::min(error, bound);
}

void Estimate::measured() {
  variance = 0;
  set_claim({});
  error = noise = 0;
}

void Estimate::left_to_measure(double root_mean_square, double largest, double claimed) {
  set_size(root_mean_square, std::min(largest, kUnbounded));
  message_spread = 1;
  message_shared = std::max(claimed, 1.0);
}

void Estimate::lose_noise() { noise = kUnbounded; }

// The reduction counts the error of x as it is expected. A claim adds all of it, as it comes
// through. The sine has the same error for equal numbers, and also for the same number after an
// earlier bootstrapping. Numbers that are not known to be real may be real all the same, for which
// the sine's error is larger. Half of a variance is taken for that of real parts: if imaginary
// parts were dropped, all of it is.
void Estimate::bootstrapped(const Estimate& x, const BootstrapNoise& added) {
  const Claim reduced = claim();
  const double most = variance * variance_spread + added.sine_of_real;
  *this += Noise{added.sine, added.reduction};
  variance_spread = most / variance;
  error = std::min(added.whole, kUnbounded);
  const Claim before = x.claim();
  const double squared = added.passed * added.passed, parts = added.drops_imaginary ? 2 : 1;
  const auto together = [](double a, double b) { return a + b + 2 * std::sqrt(a) * std::sqrt(b); };
  set_claim({0, parts * reduced.variance + together(before.variance * squared, added.sine_claimed),
             parts * reduced.principal +
                 together(before.principal * squared, added.slots * added.sine_claimed)});
}

}  // namespace jali::params
