#include "jali/base/error.h"
#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/device.cuh"
#include "jali/device/cuda/graph.cuh"

namespace jali::device {

namespace cuda {

Device::Device(const GpuOptions& options)
    : Device(options, std::make_shared<const Stream>(options.device, options.faults)) {}

Device::Device(const GpuOptions& options, const std::shared_ptr<const Stream>& stream)
    : Device(options, stream, make_memory(stream, options.memory_cap)) {}

Device::Device(const GpuOptions& options, const std::shared_ptr<const Stream>& stream,
               const std::shared_ptr<Memory>& memory)
    : device::Device("cuda:" + std::to_string(options.device), stream, memory,
                     Pool::create(/*wipe=*/false, memory, options.poison)),
      stream_(stream),
      poison_(options.poison) {}

std::unique_ptr<Graph> Device::record(std::function<void()> work) const {
  stream_->enter();
  return record_graph(stream_, pool(), memory(), poison_, work);
}

std::shared_ptr<const Device> as_gpu(const std::shared_ptr<device::Device>& device) {
  auto gpu = std::dynamic_pointer_cast<const Device>(device);
  require<InvalidArgument>(gpu != nullptr, [&] {
    return "a CUDA engine needs a GPU (device::gpu_device), not " +
           (device == nullptr ? "a null device" : "the device \"" + device->name() + "\"");
  });
  return gpu;
}

}  // namespace cuda

std::shared_ptr<Device> gpu_device(const GpuOptions& options) {
  return std::make_shared<cuda::Device>(options);
}

bool has_cuda() { return true; }

int cuda_device_count() {
  int count = 0, usable = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return 0;
  while (usable < count && cuda::code_generation(usable) > 0) ++usable;
  return usable;
}

std::string cuda_trouble() {
  int driver = 0, count = 0;  // the driver is 0 where there is none
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return {};
  if (cudaGetDeviceCount(&count) == cudaErrorNoDevice || cuda_device_count() > 0) return {};
  try {
    const cuda::Stream first(0);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string cuda_device_name(int device) {
  cudaDeviceProp properties{};
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess ? properties.name : "";
}

}  // namespace jali::device
