// out_c[g] = [out_c[g] +] sum_k a_c[k] b[g][k]: many sums over the same operands, which are read
// once for up to kMaxSums of them.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

/// Sums that a thread computes, columns of a launch, and the most sums of a launch.
constexpr int kMaxSums = 8, kMaxColumns = 32, kManySums = 64;

/// One launch. A column is an operand; b is null if a sum has no term with it. Bits: one a sum.
template <int kSums, class Bits>
struct ColumnsOf {
  static constexpr int kMost = kSums;
  const void* a0[kMaxColumns];
  const void* a1[kMaxColumns];
  const void* b[kMaxColumns][kSums];
  Bits broadcast[kMaxColumns];  // bit g: b[.][g] has one row for the whole batch
  void* out0[kSums];
  void* out1[kSums];
  int columns, sums;
  Bits accumulate;
};
using Columns = ColumnsOf<kMaxSums, std::uint8_t>;
/// 18 KB of parameters. Blocks of the grid's third axis share the sums, kMaxSums each, so that the
/// weights of many sums are read at the rate of memory whatever N is: 8 sums of 2 limbs with
/// N = 2^13 are 64 blocks, and an H200 has 132 processors.
using ManyColumns = ColumnsOf<kManySums, std::uint64_t>;

template <class W>
void weighted_sums(const Stream&, const Tables<W>&, const Shape&, const Limbs&, const Columns&);
template <class W>
void weighted_sums(const Stream&, const Tables<W>&, const Shape&, const Limbs&, const ManyColumns&);

}  // namespace jali::backend::cuda
