// CUDA's return codes as errors of ours.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "jali/base/error.h"

namespace jali::backend::cuda {

inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) [[likely]]
    return;
  const std::string text =
      std::string(what) + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code);
  if (code == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw OutOfMemory(text + "; " + std::to_string(free >> 20) + " of " +
                      std::to_string(total >> 20) + " MiB of the GPU are free");
  }
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ||
      code == cudaErrorDevicesUnavailable || code == cudaErrorInvalidDevice) {
    throw NoDevice(text + ": no usable NVIDIA GPU; use device=\"cpu\"");
  }
  throw InternalError(text);
}

/// After every launch.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace jali::backend::cuda
