// Keys and accumulators of an operation, as kernels take them.
#pragma once

#include <span>

#include "jali/backend/cuda/common/views.cuh"
#include "jali/backend/rlwe_ops.h"

namespace jali::backend::cuda {

/// The position in the key of each of `primes`. Throws InvalidArgument if the key lacks one of
/// them.
Limbs key_limbs(KeyView key, std::span<const PrimeIndex> primes);
/// The same in bytes, for kernels that take many keys.
void place_key(KeyView key, std::span<const PrimeIndex> primes, std::uint8_t (&limb)[kMaxLimbs]);
/// Throws InvalidArgument unless x.primes are the first of the accumulators' primes.
void check_first(View acc, ConstView x);

}  // namespace jali::backend::cuda
