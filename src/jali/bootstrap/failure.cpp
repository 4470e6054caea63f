#include "jali/bootstrap/failure.h"

#include <algorithm>
#include <cmath>

#include "jali/base/error.h"
#include "jali/circuits/ckks/modular_reduction.h"

namespace jali::bootstrap {

// The probability of I is the density, at I, of a sum of h + 1 uniform numbers. That density is
// convex in the tail, so P(|I| >= i) <= P(|sum| >= i - 1/2).
double log2_beyond(const ckks::Params& params, double error, int log_slots) {
  require<InvalidArgument>(params.bootstrap().has_value(),
                           "these parameters have no levels for bootstrapping: create them with "
                           "bootstrap=True");
  require<InvalidArgument>(error > 0, "the error of a bootstrapping must be positive");
  const auto& b = *params.bootstrap();
  const double ratio =
      std::min(std::exp2(b.ratio_bits), std::exp2(params.level(0).log_q) / params.scale(0));
  const circuits::ModularReduction reduction(
      {b.range, b.degree, b.doublings, b.inverse_sine, b.weight});
  int least = 0;
  while (least <= b.range && reduction.interpolation_error_at(least, 1 / ratio) * ratio <= error) {
    ++least;
  }
  if (least == 0) return 0;  // the error is too large even at I = 0, the most frequent one
  const std::size_t count = log_slots < 0 ? params.n() : std::size_t{2} << log_slots;
  return std::min(0.0, params::log2_bootstrap_failure(b.weight, least - 0.5, count));
}

}  // namespace jali::bootstrap
