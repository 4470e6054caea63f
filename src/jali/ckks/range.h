// Which numbers a level holds.
#pragma once

#include <string>

#include "jali/ckks/types.h"

namespace jali::ckks {

/// Numbers at `scale` whose modulus is below this do not wrap around the modulus of `level`, apart from their error:
/// Q_level / (2 scale).
double largest_held(const Params& params, double scale, int level);

/// The bound that a caller claims for a result: the smaller of it and `known`. Throws InvalidArgument for a claim that is negative or
/// NaN, because every number would fit it.
double claimed_peak(double claim, double known);

/// The result of an operation for which a caller claimed this peak. If the result's peak is the claim, its bounds are not derived.
Ciphertext with_claim(Ciphertext result, double claim);

/// Three digits, for sentences.
std::string shown(double x);

/// Throws RangeExceeded if numbers and errors within the bounds of `result` may exceed what the level holds. Evaluators call
/// it before they compute.
void require_range(const Params& params, const Estimate& result, double scale, int level);

}  // namespace jali::ckks
