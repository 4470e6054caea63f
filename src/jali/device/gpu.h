// NVIDIA GPUs: which there are, and how one is opened.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "jali/device/device.h"
#include "jali/device/faults.h"

namespace jali::device {

/// How a GPU is opened.
struct GpuOptions {
  int device = 0;
  std::size_t memory_cap = 0;  // bytes that its blocks may take; 0: all that the GPU has
  bool poison = false;  // freed blocks are overwritten (tests)
  std::shared_ptr<Faults> faults = nullptr;  // put into its calls of the driver (tests)
};

/// A GPU with a stream, memory and a pool of its own. Throws NoDevice if this build has no CUDA or this machine no such
/// GPU.
std::shared_ptr<Device> gpu_device(const GpuOptions& options);
/// Whether this build has CUDA.
bool has_cuda();
/// NVIDIA GPUs that gpu_device can open, 0 .. count - 1; 0 without a driver, CUDA or code for them.
int cuda_device_count();
/// Why that is 0 though there are a driver and a GPU: what gpu_device would throw; else empty.
std::string cuda_trouble();
/// Name of a GPU, e.g. "NVIDIA H100 80GB HBM3"; empty if there is none.
std::string cuda_device_name(int device = 0);

}  // namespace jali::device
