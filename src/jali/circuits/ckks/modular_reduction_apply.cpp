// The modular reduction of ciphertexts. modular_reduction.cpp has what it does to numbers, and its
// errors.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/circuits/ckks/modular_reduction.h"

namespace jali::circuits {
namespace {

/// Slopes are taken at the integers. x is close to an integer, and a quarter more allows for the
/// difference.
constexpr double kNearIntegers = 1.25;

}  // namespace

ckks::Ciphertext ModularReduction::apply(const ckks::Evaluator& evaluator,
                                         const ckks::Ciphertext& x, double scale, int weight,
                                         std::optional<double> wrong) const {
  const auto& params = *evaluator.params();
  require<DepthExhausted>(x.level >= levels(), [&] {
    return "the modular reduction takes " + std::to_string(levels()) +
           " levels, and the ciphertext has " + std::to_string(x.level);
  });
  const int poly_levels = plan_.depth_needed();
  const int r = options_.doublings;
  const int end = x.level - poly_levels - r;  // after the doublings
  // The scales are computed from the result backwards. 2 y^2 is the ciphertext of y^2, read at half
  // its scale.
  const bool bare = options_.inverse_sine == 1;
  std::vector<double> scales(static_cast<std::size_t>(r) + 1);
  scales.back() = bare ? scale / kTurn : params.ratio(end);
  for (int i = r; i > 0; --i) {
    scales[static_cast<std::size_t>(i) - 1] =
        std::sqrt(2 * scales[static_cast<std::size_t>(i)] * params.ratio(end + r - i + 1));
  }

  const double shift = -0.25 * input_factor();
  ckks::Ciphertext u = evaluator.add_scalar(x, shift);
  u.estimate.within_unit();  // because |x| <= K
  ckks::Ciphertext y = evaluate(evaluator, std::move(u), plan_, scales[0]);
  // Cosines, and what the interpolation is off by, which double angles enlarge less than fourfold
  // each.
  const double wrong_most = interpolation_error(), most = 1 + std::exp2(2 * r) * wrong_most;
  y.estimate.bound_peak(most);
  for (int i = 1; i <= r; ++i) {
    ckks::Combination double_angle;
    double_angle.products.push_back({&y, &y, 2});
    double_angle.constant = -1;
    double_angle.peak = most;
    auto square = evaluator.combine_rescale(double_angle, y.level, y.scale * y.scale / 2);
    square.scale = scales[static_cast<std::size_t>(i)];  // they are equal except for rounding
    y = std::move(square);
  }
  // The slope of x -> sin(2 pi x) is 2 pi at every integer, so an error of x grows by that factor.
  const params::Noise rounding = evaluator.noise().rounding();
  const double wrong_rms = interpolation_error_rms(weight), n = static_cast<double>(params.n());
  const double inside =
      x.estimate.variance / (x.scale * x.scale) / (input_factor() * input_factor()) +
      wrong_rms * wrong_rms / n;
  const Variance own = variance(params, x, scales, rounding.variance, weight);
  const double left = (own.mean + inside * kTurn * kTurn) * y.scale * y.scale;
  // A product is relinearised before it is divided, so its key-switching noise is divided, too.
  const params::Noise product = evaluator.noise().key_product(x.level);
  double least_ratio = params.ratio(x.level);
  for (int l = x.level; l > end; --l) least_ratio = std::min(least_ratio, params.ratio(l));
  const double each = rounding.bound + product.bound / least_ratio;
  const auto bounded = [&](double made, double error, double off) {
    const double entered = error / x.scale / input_factor() + off;
    return std::min((kNearIntegers * made + entered * kTurn) * y.scale, params::kUnbounded);
  };
  const double noise = bounded(bound(params, x, scales, each),
                               std::max(x.estimate.error, x.estimate.noise), wrong_most);
  const double switched = product.variance / (least_ratio * least_ratio * rounding.variance);
  const double error =
      std::min(noise, bounded(kCircuitDeviations * std::sqrt(n * own.largest * (1 + switched)),
                              x.estimate.error, wrong.value_or(wrong_most)));
  y.estimate.remainder(left, noise, error);
  if (bare) {
    y.scale = scale;  // divides by 2 pi
    return y;
  }
  return evaluate(evaluator, y, arcsine_, scale);
}

}  // namespace jali::circuits
