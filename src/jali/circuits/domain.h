// Checks that numbers lie in the interval of a function, before anything is computed.
#pragma once

#include <optional>
#include <string>

#include "jali/approx/series.h"
#include "jali/ckks/evaluator.h"

namespace jali::circuits {

/// x with the peak that follows from what is known, if its numbers are known to lie in `on`.
///
/// Every slot is known to have |x| <= estimate.peak. `within` is the caller's word on the numbers of the vector. Throws
/// InvalidArgument for complex numbers, and if the known interval is not inside `on`; the message has both intervals and
/// says what to do.
/// The slots behind the vector's length hold zeros, or unknown numbers. If 0 is not in `on`, zeros are replaced by the middle
/// of `on`, which costs no level, and vectors with unknown numbers there are refused.
/// what: names the function in messages, as in "the polynomial".
ckks::Ciphertext inside(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                        const approx::Interval& on, const std::optional<approx::Interval>& within,
                        const std::string& what);

}  // namespace jali::circuits
