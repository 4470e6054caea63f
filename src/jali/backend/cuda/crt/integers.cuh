// Machine integers (64-bit, or doubles that hold integers) to residues.
#pragma once

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

/// c: (batch, N / 2^log_stride) on the device, the coefficients of polynomials in X^(2^log_stride).
template <class W>
void from_int64(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out,
                const std::int64_t* c, int log_stride);
/// c: (batch, N) on the device.
template <class W>
void from_double(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out,
                 const double* c);

}  // namespace jali::backend::cuda
