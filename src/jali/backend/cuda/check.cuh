// CUDA's return codes as errors of ours.
#pragma once

#include <cuda_runtime.h>

#include "jali/backend/cuda/memory.cuh"
#include "jali/base/error.h"

namespace jali::backend::cuda {

/// Calls that belong to no engine's stream. Throws NoDevice, OutOfMemory or DeviceLost.
void check(cudaError_t code, const char* what);

/// Whether this build has code that a GPU runs: cubins of its generation, or PTX that is not newer.
bool has_code_for(int device);

/// After every launch: throws LaunchFailed or DeviceLost, naming the kernel.
inline void check_launch(const Stream& stream, const char* kernel) { stream.launched(kernel); }

}  // namespace jali::backend::cuda
