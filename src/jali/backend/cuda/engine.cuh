// What kernels of key switching and division share.
#pragma once

#include "jali/backend/cuda/elementwise.cuh"
#include "jali/backend/cuda/tile.cuh"
#include "jali/device/buffer.h"

namespace jali::backend::cuda {

constexpr unsigned kMaxDigits = 128;

/// Where the digits of a block lie in it, and their rows of the matrix. By value.
struct DigitTable {
  std::uint16_t begin[kMaxDigits], count[kMaxDigits];
  std::uint32_t matrix[kMaxDigits];
  unsigned digits;
};

/// What the operations of one engine share.
template <class W>
struct Engine {
  const Stream& stream;
  const Tables<W>& tables;  // as tiles read them
  const Tables<W>& transforms;  // of the engine's own transform
  device::Pool& scratch;
  int log_n;
  unsigned processors;  // SMs of the GPU
};

}  // namespace jali::backend::cuda
