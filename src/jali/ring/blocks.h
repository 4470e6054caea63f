// Puts blocks of polynomials into one batch, and takes them out again. Ciphertexts of every scheme
// are made of blocks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "jali/ring/poly.h"

namespace jali::ring {

/// One block in the ring's memory that holds the polynomials of all `blocks` in order, so that its
/// batch is the sum of their batches. The blocks may lie in any memory. Throws InvalidArgument if
/// there is none, and InternalError unless all have the same primes and the same form.
Poly stack(const Ring& ring, std::span<const Poly* const> blocks);

/// The inverse of stack: divides x, which lies in the ring's memory, into blocks of the given
/// batches. Throws InvalidArgument unless these add up to the batch of x.
std::vector<Poly> split(const Ring& ring, const Poly& x, std::span<const std::size_t> batches);

}  // namespace jali::ring
