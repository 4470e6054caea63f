// Which scales a ciphertext or plaintext of a level may have.
#pragma once

#include <cmath>

#include "jali/params/ckks_params.h"

namespace jali::ckks {

/// Whether `scale` is between 2^-64 and 2^64 Q_level. The scale of a product before rescaling may
/// exceed the modulus, but no sensible one lies outside these limits. The evaluator and the loaders
/// apply the same limits, so that each accepts what the other makes.
inline bool is_plausible_scale(double scale, const rlwe::Level& level) {
  return std::isfinite(scale) && scale >= 0x1p-64 && std::log2(scale) <= level.log_q + 64;
}

}  // namespace jali::ckks
