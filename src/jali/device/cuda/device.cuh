// A GPU as a device (device/device.h), which CUDA engines borrow.
#pragma once

#include "jali/device/cuda/stream.cuh"
#include "jali/device/gpu.h"

namespace jali::device::cuda {

class Device final : public device::Device {
 public:
  explicit Device(const GpuOptions& options);  // throws NoDevice
  std::unique_ptr<Graph> record(std::function<void()> work) const override;
  /// The same as stream(), for launches.
  const std::shared_ptr<const Stream>& cuda_stream() const { return stream_; }

 private:
  Device(const GpuOptions& options, const std::shared_ptr<const Stream>& stream);
  Device(const GpuOptions& options, const std::shared_ptr<const Stream>& stream,
         const std::shared_ptr<Memory>& memory);

  const std::shared_ptr<const Stream> stream_;
  const bool poison_;
};

/// The device as a GPU. Throws InvalidArgument if an engine for GPUs was given another device.
std::shared_ptr<const Device> as_gpu(const std::shared_ptr<device::Device>& device);

}  // namespace jali::device::cuda
