// Checks that numbers lie in the interval of a function, before anything is computed.
#pragma once

#include <optional>
#include <string>

#include "jali/approx/series.h"
#include "jali/schemes/ckks/evaluator.h"

namespace jali::circuits {

/// x with the peak that follows from what is known, if its numbers are known to lie in `on`.
///
/// Every slot is known to have |x| <= estimate.peak. `within` is the caller's word on the numbers
/// of the vector alone. Throws InvalidArgument for complex numbers, and if the known interval is
/// not inside `on`; the message has both intervals and says what to do. Slots that hold no number
/// are mapped, too. Throws InvalidArgument if what is known of them (ckks::rest_of) is not inside
/// `on`, either. If 0 is not in `on`, zeros there are replaced by filling(on), which costs no
/// level, and vectors with anything else there are refused. what: names the function in messages,
/// as in "the polynomial".
ckks::Ciphertext inside(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                        const approx::Interval& on, const std::optional<approx::Interval>& within,
                        const std::string& what);

/// What slots that hold no number are given if they are zero: 0, or the middle of an interval
/// without 0.
double filling(const approx::Interval& on);

}  // namespace jali::circuits
