// NVIDIA GPUs: which ones there are, and how one is opened.
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
  bool poison = false;         // for tests: freed blocks are overwritten
  std::shared_ptr<Faults> faults = nullptr;  // for tests: put into its calls of the driver
};

/// Opens a GPU with a stream, memory and a pool of its own. Throws NoDevice if this build has no
/// CUDA, if this machine has no such GPU, or if the build has no code for it.
std::shared_ptr<Device> gpu_device(const GpuOptions& options);
/// Whether this build has CUDA.
bool has_cuda();
/// The number of NVIDIA GPUs that gpu_device can open, which are 0 to count - 1. It is 0 without a
/// driver, without CUDA, or without code for them.
int cuda_device_count();
/// If that is 0 although there are a driver and a GPU: the message that gpu_device would throw.
/// Otherwise empty.
std::string cuda_trouble();
/// Name of a GPU, e.g. "NVIDIA H100 80GB HBM3"; empty if there is none.
std::string cuda_device_name(int device = 0);

}  // namespace jali::device
