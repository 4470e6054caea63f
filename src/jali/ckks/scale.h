// Which scales a ciphertext or plaintext of a level may have.
#pragma once

#include <cmath>

#include "jali/params/ckks_params.h"

namespace jali::ckks {

/// A product before rescaling may exceed the modulus. Beyond 2^64 times it, or below 2^-64, nothing makes sense:
/// neither the evaluator nor a loader gives such an object, so that what one gives the other takes.
inline bool is_plausible_scale(double scale, const rlwe::Level& level) {
  return std::isfinite(scale) && scale >= 0x1p-64 && std::log2(scale) <= level.log_q + 64;
}

}  // namespace jali::ckks
