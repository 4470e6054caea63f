// Blocks of polynomials put into one batch, and taken out of it: what a ciphertext of any scheme is made of.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "jali/ring/poly.h"

namespace jali::ring {

/// One block whose batch is that of all of them together, in order, in the ring's memory. They are in any memory, over
/// the same primes and in the same form.
Poly stack(const Ring& ring, std::span<const Poly* const> blocks);

/// Its inverse: blocks of the given batches, which add up to that of x. x is in the ring's memory.
std::vector<Poly> split(const Ring& ring, const Poly& x, std::span<const std::size_t> batches);

}  // namespace jali::ring
