// What bounds the error of a bootstrapped slot beside the input's error, the noise of the circuit
// (circuits::kCircuitDeviations) and the sine (BootstrapPlan::worst_sine_error). See docs/noise.md.
#pragma once

#include <cstddef>

#include "jali/circuits/ckks/dft.h"
#include "jali/circuits/ckks/modular_reduction.h"

namespace jali::bootstrap {

/// log2 of a bound on the probability that a coefficient of a raised ciphertext has |I| >= least,
/// where I is the integer that the modular reduction takes away. least: at least 1.
double log2_integer_beyond(int weight, int least);

/// A bound, which fails with a probability of at most 2^-128, on the error of the cosine's
/// polynomial in one of `count` coefficients, in units of the modulus q_0; with `summed`, on the
/// sum of the moduli of the errors of all of them. distance: of the coefficients from the multiples
/// of q_0, in the same unit.
double largest_cosine_error(const circuits::ModularReduction& reduction, std::size_t count,
                            double distance, bool summed);

/// A bound on what the roundings of the numbers in the matrices of slots to coefficients add to a
/// slot, over a bound on the slots of the message. raise_first: whether the matrices are applied at
/// the end, and what they gather in a slot counts.
double largest_matrix_error(const circuits::HomomorphicDft& to_coefficients,
                            const ckks::Params& params, bool raise_first);

}  // namespace jali::bootstrap
