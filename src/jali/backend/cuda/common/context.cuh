// What the launchers of base conversion, key switching and ModDown share.
#pragma once

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/device/buffer.h"

namespace jali::backend::cuda {

/// What the operations of one engine share.
template <class W>
struct Context {
  const Stream& stream;
  const Tables<W>& tables;  // as tiles read them
  const Tables<W>& transforms;  // of the engine's own transform
  device::Pool& scratch;
  int log_n;
  unsigned processors;  // SMs of the GPU
};

}  // namespace jali::backend::cuda
