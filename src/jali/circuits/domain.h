// Whether numbers lie where a function is approximated: refused before anything is computed.
#pragma once

#include <optional>
#include <string>

#include "jali/approx/series.h"
#include "jali/ckks/evaluator.h"

namespace jali::circuits {

/// x, as a function on `on` takes it, with the peak that follows from what is known.
///
/// What is known of every slot is |x| <= estimate.peak, and `within`, the caller's word on the numbers of the vector. Throws
/// InvalidArgument with both intervals and what to do if that is not inside `on`, and for complex numbers. Slots behind the
/// vector's length hold zeros, or nothing known. If 0 is not in `on`, zeros are replaced by its middle, which costs no
/// level, and vectors with anything else there are refused.
/// what: for messages, "the polynomial".
ckks::Ciphertext inside(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                        const approx::Interval& on, const std::optional<approx::Interval>& within,
                        const std::string& what);

}  // namespace jali::circuits
