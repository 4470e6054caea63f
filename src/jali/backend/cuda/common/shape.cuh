// Shapes of operands, as kernels take them: by value, so that a launch needs no upload.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::backend::cuda {

/// Limbs of a block by value: kernel parameters need no upload.
constexpr std::size_t kMaxLimbs = 256;
constexpr std::uint16_t kSkip = 0xffff;  // a limb that a kernel leaves alone
struct Limbs {
  std::uint16_t prime[kMaxLimbs];
};

/// A scalar as residues, one a limb, by value.
template <class W>
struct Scalars {
  typename W::Stored s[kMaxLimbs];
};

/// Shape of the output block.
struct Shape {
  unsigned limb_count, batch;
  int log_n;
};

}  // namespace jali::backend::cuda
