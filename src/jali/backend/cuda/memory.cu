#include "jali/backend/cuda/check.cuh"
#include "jali/backend/cuda/memory.cuh"

namespace jali::backend::cuda {

Stream::Stream(int device) : device_(device) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "looking for GPUs");
  require<NoDevice>(device >= 0 && device < count, [&] {
    return "cuda:" + std::to_string(device) + " does not exist: this machine has " +
           std::to_string(count) + " GPU(s); use device=\"cpu\"";
  });
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  // Freed blocks stay with the driver's pool: fresh ones cost a system call.
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
  std::uint64_t keep = UINT64_MAX;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
        "cudaMemPoolSetAttribute");
}

Stream::~Stream() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

void Stream::enter() const { check(cudaSetDevice(device_), "cudaSetDevice"); }
void Stream::synchronize() const { check(cudaStreamSynchronize(stream_), "waiting for the GPU"); }

namespace {

class GpuMemory final : public device::Memory {
 public:
  explicit GpuMemory(std::shared_ptr<const Stream> stream) : stream_(std::move(stream)) {}

  void* allocate(std::size_t bytes) override {
    stream_->enter();
    void* data = nullptr;
    const cudaError_t code = cudaMallocAsync(&data, bytes, stream_->get());
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // not sticky; the caller reports it
      return nullptr;
    }
    check(code, "cudaMallocAsync");
    return data;
  }
  void free(void* data, std::size_t) noexcept override {
    cudaSetDevice(stream_->device());
    cudaFreeAsync(data, stream_->get());
  }
  void wipe(void* data, std::size_t bytes) noexcept override {
    cudaSetDevice(stream_->device());
    cudaMemsetAsync(data, 0, bytes, stream_->get());
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    stream_->enter();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_->get()), "copy");
  }
  void copy_in(void* to, const void* host, std::size_t bytes) override {
    stream_->enter();
    check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, stream_->get()), "upload");
  }
  void copy_out(void* host, const void* from, std::size_t bytes) override {
    stream_->enter();
    check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream_->get()), "download");
    stream_->synchronize();
  }
  bool host_accessible() const override { return false; }

 private:
  std::shared_ptr<const Stream> stream_;
};

}  // namespace

std::shared_ptr<device::Memory> make_memory(std::shared_ptr<const Stream> stream) {
  return std::make_shared<GpuMemory>(std::move(stream));
}

}  // namespace jali::backend::cuda
