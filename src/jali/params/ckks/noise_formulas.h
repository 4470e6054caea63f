// Arithmetic of averages and bounds, for the files of the noise model alone.
#pragma once

#include <algorithm>
#include <cmath>

#include "jali/params/ckks/estimate.h"

namespace jali::params::formulas {

/// Half a unit in the last place of 1.
inline constexpr double kDouble = 0x1p-53;

/// a b, or 0 if either is 0. An average that outgrows a double becomes infinite, and this product
/// never becomes NaN.
inline double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

/// Bounds stay finite numbers: a bound that is not known is neither multiplied to infinity nor, by
/// 0, to NaN.
inline double saturated(double bound) { return bound < kUnbounded ? bound : kUnbounded; }

inline double saturated_product(double a, double b) {
  return a == 0 || b == 0 ? 0 : saturated(a * b);
}

/// By which factor `spread` is larger than `average`: at least 1, and 1 if the average is 0.
inline double ratio(double spread, double average) {
  return average > 0 && std::isfinite(average) && spread > average
             ? std::min(spread / average, kUnbounded)
             : 1;
}

/// (sqrt(a) + sqrt(b))^2: the largest variance of the sum of two errors.
inline double together(double a, double b) {
  return a == 0 ? b : b == 0 ? a : a + b + 2 * std::sqrt(times(a, b));
}

}  // namespace jali::params::formulas
