// Seeds that stand for the second part of fresh ciphertexts.
#pragma once

#include "jali/params/rlwe_params.h"
#include "jali/rlwe/ciphertext.h"

namespace jali::wire {

/// Throws InternalError unless the seed of x, which has one, is that of its second part. If a
/// ciphertext that is no longer fresh still had its seed, readers would get another second part. So
/// this compares the first row of that part with the row that readers will expand.
void check_seed(const rlwe::Ciphertext& x, const rlwe::Params& params);

/// Makes the second part of a ciphertext that was read with its seed in its place.
void expand_seed(rlwe::Ciphertext& x, const rlwe::Params& params, const ring::Ring& ring);

}  // namespace jali::wire
