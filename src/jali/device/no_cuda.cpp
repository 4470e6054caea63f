// Replaces cuda/ in builds without nvcc.
#include "jali/base/error.h"
#include "jali/device/gpu.h"

namespace jali::device {

std::shared_ptr<Device> gpu_device(const GpuOptions&) {
  throw NoDevice(
      "this build has no CUDA engine: use device=\"cpu\" or \"auto\", or build again with nvcc on "
      "the PATH, in CUDA_HOME, or installed from PyPI");
}

bool has_cuda() { return false; }

int cuda_device_count() { return 0; }

std::string cuda_trouble() { return {}; }

std::string cuda_device_name(int) { return {}; }

}  // namespace jali::device
