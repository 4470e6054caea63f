// Which numbers a level holds.
#pragma once

#include <string>

#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// Numbers at `scale` whose modulus is below this do not wrap around the modulus of `level`, apart
/// from their error: Q_level / (2 scale).
double largest_held(const Params& params, double scale, int level);

/// The bound that a caller claims for a result: the smaller of it and `known`. Throws
/// InvalidArgument for a claim that is negative or NaN, because every number would fit it.
double claimed_peak(double claim, double known);

/// The estimate of a result for which a caller claims this peak. Throws as claimed_peak.
void bound_by_claim(Estimate& result, double claim);

/// The result of an operation for which a caller claimed this peak. If the result's peak is the
/// claim, its bounds are not derived.
Ciphertext with_claim(Ciphertext result, double claim);

/// Three digits, for sentences.
std::string shown(double x);

/// For sentences, as "; or make the parameters with integer_bits=36": those whose levels hold
/// numbers 2^bits times as large. Nothing where the room of integers cannot be asked for: it
/// follows from the precision of a bootstrapping.
std::string with_integer_bits(const Params& params, double bits);

/// For sentences: the parameters with which the results of operations may be 2^bits times as large.
/// Further levels come first: each leaves room for numbers 2^scale_bits times as large, in this
/// operation and in those that follow, of which nothing is known here. integer_bits alone would be
/// asked for again by the next operation.
std::string with_more_room(const Params& params, double bits);

/// Throws RangeExceeded if a level does not hold numbers up to a peak that was declared for
/// encryption.
void require_peak(const Params& params, double peak, double scale, int level);

/// Throws RangeExceeded if numbers and errors within the bounds of `result` may exceed what the
/// level holds. Evaluators call it before they compute.
void require_range(const Params& params, const Estimate& result, double scale, int level);

}  // namespace jali::ckks
