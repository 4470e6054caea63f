// The probability that the error of one bootstrapping exceeds a bound. See
// docs/math/bootstrapping.md.
#pragma once

#include "jali/params/ckks_params.h"

namespace jali::bootstrap {

/// log2 of a bound on the probability that one bootstrapping of 2^log_slots slots (-1: N/2) has a
/// large error in some coefficient. Let I = round(phase / q_0) of the coefficient. The fit of the
/// modular reduction is worse at rare I, and beyond |I| > K the coefficient is lost. With i the
/// smallest |I| at which the reduction's error is above `error` (in message units), or K + 1 if
/// there is none, the bound is
///   the sum over 2^(log_slots + 1) coefficients and both signs of P(I >= i).
/// With slots_first a coefficient is the real or imaginary part of a slot; with raise_first it
/// contributes to all slots. Noise, and the error of the sine itself, are not counted. Throws
/// InvalidArgument for parameters without bootstrapping, and unless error > 0.
double log2_beyond(const ckks::Params& params, double error, int log_slots = -1);

}  // namespace jali::bootstrap
