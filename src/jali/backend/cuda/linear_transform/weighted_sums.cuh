// out_c[g] = [out_c[g] +] sum_k a_c[k] b[g][k]: many sums over the same operands, which are read
// once for up to kMaxSums of them.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

constexpr int kMaxSums = 8, kMaxColumns = 32;

/// One launch. A column is an operand; b is null if a sum has no term with it.
struct Columns {
  const void* a0[kMaxColumns];
  const void* a1[kMaxColumns];
  const void* b[kMaxColumns][kMaxSums];
  std::uint8_t broadcast[kMaxColumns];  // bit g: b[.][g] has one row for the whole batch
  void* out0[kMaxSums];
  void* out1[kMaxSums];
  int columns, sums;
  std::uint8_t accumulate;  // bit g
};

template <class W>
void weighted_sums(const Stream&, const Tables<W>&, const Shape&, const Limbs&, const Columns&);

}  // namespace jali::backend::cuda
