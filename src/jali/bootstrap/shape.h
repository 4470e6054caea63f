// Where the two discrete Fourier transforms of a bootstrapping lie. It is known without their
// matrices.
#pragma once

#include "jali/circuits/ckks/dft.h"

namespace jali::bootstrap {

/// The options of both transforms without their scales, factors and shifts, for parameters with
/// bootstrapping and a packing of 2^log_slots slots, log_slots at least 1. side_by_side: with few
/// slots, the real and imaginary parts fit into one ciphertext.
struct Shape {
  bool side_by_side = false;
  circuits::DftOptions to_slots, to_coefficients;
};
Shape shape_of(const ckks::Params& params, int log_slots);

}  // namespace jali::bootstrap
