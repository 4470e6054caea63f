// Constants on a GPU.
#pragma once

#include "jali/device/cuda/stream.cuh"

namespace jali::device::cuda {

/// A block of device memory whose contents never change.
class Constant {
 public:
  Constant() = default;
  Constant(const Stream& stream, const void* host, std::size_t bytes);
  ~Constant();
  Constant(Constant&& other) noexcept;
  Constant& operator=(Constant&& other) noexcept;
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace jali::device::cuda
