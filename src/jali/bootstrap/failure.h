// The probability that one bootstrapping is off by more than an error. See docs/math/bootstrapping.md.
#pragma once

#include "jali/params/ckks_params.h"

namespace jali::bootstrap {

/// log2 of a bound on the probability that in one bootstrapping of 2^log_slots slots (-1: of N/2) some coefficient
/// meets an integer I = round(phase / q_0) so rare that the reduction is off there by more than `error`, in units of
/// the message; any error counts |I| > K, where it is lost. With slots_first a coefficient is the real or imaginary
/// part of a slot, with raise_first it adds to all slots. Noise and what the sine itself is off come on top.
///   sum over both signs and 2^(log_slots + 1) coefficients of P(|I| >= i), i the least with a larger error.
double log2_beyond(const ckks::Params& params, double error, int log_slots = -1);

}  // namespace jali::bootstrap
