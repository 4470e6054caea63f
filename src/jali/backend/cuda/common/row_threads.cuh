// Kernels whose threads compute one residue each. blockIdx.y is the row, so that a warp reads
// consecutive words.
#pragma once

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/common/shape.cuh"

namespace jali::backend::cuda {

inline dim3 grid_of(const Shape& s) {
  const unsigned n = 1u << s.log_n;
  return dim3(n < kBlockThreads ? 1 : n / kBlockThreads, s.limb_count * s.batch);
}
inline unsigned threads_of(const Shape& s) {
  return (1u << s.log_n) < kBlockThreads ? 1u << s.log_n : kBlockThreads;
}

/// The residue that a thread works on. place() waits for the predecessor kernel, so that memory may
/// be read after it.
struct Place {
  unsigned limb, b, k;
  std::size_t at;  // in a block of the full batch
  std::size_t broadcast;  // in a block of batch 1
};
__device__ inline Place place(const Shape& s) {
  after_predecessor();
  Place p;
  p.limb = blockIdx.y / s.batch;
  p.b = blockIdx.y % s.batch;
  p.k = blockIdx.x * blockDim.x + threadIdx.x;
  p.at = (static_cast<std::size_t>(blockIdx.y) << s.log_n) + p.k;
  p.broadcast = (static_cast<std::size_t>(p.limb) << s.log_n) + p.k;
  return p;
}

}  // namespace jali::backend::cuda
