// d = sum_j (1 or 2) a_j b_j + sum_k s_k x_k + constant: sums of products and multiples of
// ciphertexts, every operand read once.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

constexpr int kMaxProducts = 4, kMaxMultiples = 8;

/// One launch: where the operands lie, and limb i of the sum in each of them.
template <class W>
struct CombinationTerms {
  using Stored = typename W::Stored;
  const Stored *a0[kMaxProducts], *a1[kMaxProducts], *b0[kMaxProducts], *b1[kMaxProducts];
  const Stored *x0[kMaxMultiples], *x1[kMaxMultiples];
  std::uint8_t at_a[kMaxProducts][kMaxLimbs], at_b[kMaxProducts][kMaxLimbs];
  std::uint8_t at_x[kMaxMultiples][kMaxLimbs];
  Stored s[kMaxMultiples][kMaxLimbs], constant[kMaxLimbs];
  int products, multiples;
  std::uint8_t twice;  // bit j
  bool three;  // d2 too
  bool accumulate;  // add to what d holds
};

template <class W>
void combine(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* d0, void* d1,
             void* d2, const CombinationTerms<W>&);

}  // namespace jali::backend::cuda
