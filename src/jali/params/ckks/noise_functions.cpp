// Functions of numbers in an interval: polynomials, comparisons, and the modular reduction.
#include <algorithm>
#include <cmath>

#include "jali/params/ckks/estimate.h"

namespace jali::params {

void Estimate::filled(const Estimate& x, double filling) {
  message = std::max(x.message, std::fabs(filling));
}

void Estimate::within(const Estimate& x, double low, double high, double rest, double reach) {
  if (low > -x.peak || high < x.peak) mark_claimed();
  peak = std::min({x.peak, std::max({std::fabs(low), std::fabs(high), rest}), reach});
}

void Estimate::within_unit() { peak = 1; }

// The model would multiply the root mean squares of the factors of T_i, as if they were
// independent. On the interval |T_i| <= 1.
void Estimate::chebyshev_term(double largest) {
  const double most = std::min(claim().message, 1.0);
  message = std::min(message * message_spread, 1.0);
  message_spread = 1;
  message_shared = message > 0 ? std::max(most / message, 1.0) : 1;
  peak = largest;
}

// Nothing is known of remainders but their size: they are messages, which are small beside the
// modulus.
void Estimate::remainder(double variance_left, double noise_left, double error_left) {
  constexpr double kExpected = 0.1;
  variance = variance_left;
  noise = noise_left;
  error = error_left;
  message = kExpected;
  message_spread = variance_spread = 1;
  set_claim({});
  lineage = {};
  peak = 1;
}

}  // namespace jali::params
