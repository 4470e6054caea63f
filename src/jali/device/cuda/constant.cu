#include <utility>

#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/constant.cuh"

namespace jali::device::cuda {

Constant::Constant(const Stream& stream, const void* host, std::size_t bytes) {
  stream.enter();
  const std::size_t size = bytes == 0 ? 1 : bytes;
  stream.check(stream.ask(device::Call::allocate, [&] { return cudaMalloc(&data_, size); }),
               "constants of the engine", size);
  // `host` is pageable memory, so it has been read when this returns.
  stream.check(cudaMemcpyAsync(data_, host, bytes, cudaMemcpyHostToDevice, stream.main()),
               "constants of the engine");
}
Constant::~Constant() {
  if (data_ != nullptr) cudaFree(data_);
}
Constant::Constant(Constant&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
Constant& Constant::operator=(Constant&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace jali::device::cuda
