// out_c[g] = [out_c[g] +] sum_k rotated_c[k] b[g][k], rotated[k] = (s c0, s c1) or
//   (sum_j sigma(ext_j) key[j][0] + s sigma(c0), sum_j sigma(ext_j) key[j][1]).
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/cuda/key_switch/key_product.cuh"

namespace jali::backend::cuda {

constexpr int kMaxRotations = 32, kMaxRotatedSums = 16;

/// One launch. b is null if a sum has no term with a rotation.
struct Rotations {
  const void* ext[kMaxRotations];  // (digit, limb, batch, N)
  const void* c0[kMaxRotations];   // (own limb, batch, N)
  const void* c1[kMaxRotations];   // read if g is 1
  const void* key[kMaxRotations];  // (digit, part, limb, N)
  unsigned key_limbs[kMaxRotations];
  std::uint8_t limb[kMaxRotations][kMaxLimbs];  // of a key by limb of the sums
  std::uint32_t g[kMaxRotations];
  const void* b[kMaxRotations][kMaxRotatedSums];
  std::uint16_t broadcast[kMaxRotations];  // bit g: b[.][g] has one row for the whole batch
  void* out0[kMaxRotatedSums];
  void* out1[kMaxRotatedSums];
  int rotations, sums, digits;
  unsigned own_limbs;
  std::uint16_t accumulate;  // bit g
};

/// ids: of the keys' digits; it names no key.
template <class W>
void rotated_sums(const Stream&, const Tables<W>&, const Shape&, const Limbs&, const Rotations&,
                  const KeyDigits& ids, const Scalars<W>& s);

}  // namespace jali::backend::cuda
