// GPU memory, ordered with one stream.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "jali/device/memory.h"

namespace jali::backend::cuda {

/// A stream and the device it is on. Everything of one engine runs on one stream.
class Stream {
 public:
  explicit Stream(int device);  // throws NoDevice
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  int device() const { return device_; }
  /// Makes the device current for the calling thread; every entry point calls it.
  void enter() const;
  void synchronize() const;

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

std::shared_ptr<device::Memory> make_memory(std::shared_ptr<const Stream> stream);

}  // namespace jali::backend::cuda
