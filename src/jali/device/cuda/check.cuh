// Turns CUDA's return codes into Jali's errors.
#pragma once

#include <cuda_runtime.h>

#include "jali/base/error.h"
#include "jali/device/cuda/stream.cuh"

namespace jali::device::cuda {

/// Checks a call that belongs to no stream. Throws NoDevice, OutOfMemory, DeviceLost or
/// InternalError. what: names the call in messages. asked: the bytes of the GPU's memory that it
/// asked for.
void check(cudaError_t code, const char* what, std::size_t asked = device::kUnknown);

/// A kernel whose blocks take more than 48 KB of shared memory has to ask for it. What is allowed
/// never shrinks, because a recorded launch is checked against it when its graph is made.
template <class Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  if (bytes <= (48 << 10)) return;
  cudaFuncAttributes now{};
  check(cudaFuncGetAttributes(&now, kernel), "shared memory of a kernel");
  if (static_cast<std::size_t>(now.maxDynamicSharedSizeBytes) >= bytes) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "shared memory of a kernel");
}

template <class Kernel>
void allow_wide_clusters(Kernel* kernel) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
        "clusters of a kernel");
}

/// The generation (major compute capability) of this build's code that a GPU runs: a cubin for its
/// own generation, or PTX that is not newer. 0 if there is none.
int code_generation(int device);

/// Must be called after every launch. Throws LaunchFailed or DeviceLost, which name the kernel.
inline void check_launch(const Stream& stream, const char* kernel) { stream.launched(kernel); }

}  // namespace jali::device::cuda
