#include <algorithm>
#include <atomic>

#include "jali/base/error.h"
#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/staging.cuh"

namespace jali::device::cuda {

namespace {

using device::Call;

/// The addresses of as many blocks as one launch handles. The struct is passed to the kernel by
/// value.
constexpr std::size_t kMaxBlocks = 256;
struct Blocks {
  void* at[kMaxBlocks];
};

// A thread copies 16 bytes of piece y of block z.
template <bool kGather>
__global__ void interleave_kernel(Blocks blocks, void* together, std::size_t pieces,
                                  std::size_t all, std::size_t first) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= pieces) return;
  auto* apart = static_cast<int4*>(blocks.at[blockIdx.z]) + blockIdx.y * pieces + i;
  auto* joined =
      static_cast<int4*>(together) + (blockIdx.y * all + first + blockIdx.z) * pieces + i;
  if constexpr (kGather) {
    *joined = *apart;
  } else {
    *apart = *joined;
  }
}

/// Blocks come from a pool of the driver that this memory owns, because fresh memory costs a system
/// call.
class GpuMemory final : public device::Memory {
 public:
  GpuMemory(std::shared_ptr<const Stream> stream, std::size_t cap)
      : stream_(std::move(stream)), cap_(cap), staging_(stream_) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, stream_->device()};
    stream_->check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    std::uint64_t keep = UINT64_MAX;
    stream_->check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
                   "cudaMemPoolSetAttribute");
  }
  ~GpuMemory() override {
    cudaSetDevice(stream_->device());
    cudaStreamSynchronize(stream_->main());
    cudaMemPoolDestroy(pool_);
  }

  void* allocate(std::size_t bytes) override {
    stream_->enter();
    if (cap_ != 0 && used_.fetch_add(bytes) + bytes > cap_) {
      used_ -= bytes;
      return nullptr;
    }
    void* data = nullptr;
    const cudaError_t code = stream_->ask(Call::allocate, [&] {
      return cudaMallocFromPoolAsync(&data, bytes, pool_, stream_->main());
    });
    if (code == cudaSuccess) return data;
    if (cap_ != 0) used_ -= bytes;
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // the caller reports it
      return nullptr;
    }
    stream_->check(code, "allocating memory of the GPU");
    return nullptr;
  }
  void free(void* data, std::size_t bytes) noexcept override {
    cudaSetDevice(stream_->device());
    cudaFreeAsync(data, stream_->main());
    if (cap_ != 0) used_ -= bytes;
  }
  void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept override {
    cudaSetDevice(stream_->device());
    // The block is filled in pieces, because a graph accepts a fill of 128 MB but refuses one of
    // 180 MB.
    constexpr std::size_t kPiece = std::size_t{64} << 20;
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      cudaMemsetAsync(static_cast<std::byte*>(data) + at, byte, std::min(kPiece, bytes - at),
                      stream_->get());
    }
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    stream_->enter();
    copied(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_->get()));
  }
  void copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                 std::size_t bytes, std::size_t rows) override {
    stream_->enter();
    copied(cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, rows,
                             cudaMemcpyDeviceToDevice, stream_->get()));
  }
  void gather(void* to, std::span<const void* const> from, std::size_t bytes,
              std::size_t rows) override {
    interleave<true>(to, from.size(), bytes, rows,
                     [&](std::size_t k) { return const_cast<void*>(from[k]); });
  }
  void scatter(std::span<void* const> to, const void* from, std::size_t bytes,
               std::size_t rows) override {
    interleave<false>(const_cast<void*>(from), to.size(), bytes, rows,
                      [&](std::size_t k) { return to[k]; });
  }
  bool copy_from(Memory& other, void* to, const void* from, std::size_t bytes) override {
    auto* source = dynamic_cast<GpuMemory*>(&other);
    if (source == nullptr) return false;
    stream_->refuse_recording("a copy from another device");
    source->stream_->enter();
    const int here = stream_->device(), there = source->stream_->device();
    if (here != there && !reach(*source)) return false;
    // The source's work so far comes first, then the copy on this stream, then what the source does
    // next.
    const Event written(*source->stream_);
    stream_->enter();
    stream_->check(cudaStreamWaitEvent(stream_->main(), written.get()), "cudaStreamWaitEvent");
    copied(cudaMemcpyPeerAsync(to, here, from, there, bytes, stream_->main()));
    const Event read(*stream_);
    source->stream_->enter();
    source->stream_->check(cudaStreamWaitEvent(source->stream_->main(), read.get()),
                           "cudaStreamWaitEvent");
    stream_->enter();
    return true;
  }
  void copy_in(void* to, const void* host, std::size_t bytes) override {
    stream_->enter();
    stream_->refuse_recording("an upload of the host's data");
    staging_.copy_in(to, host, bytes);
  }
  void copy_secret_in(void* to, const void* host, std::size_t bytes) override {
    stream_->enter();
    stream_->refuse_recording("an upload of the host's data");
    staging_.copy_in(to, host, bytes, true);
  }
  void copy_out(void* host, const void* from, std::size_t bytes) override {
    stream_->enter();
    stream_->refuse_recording("a download");
    staging_.copy_out(host, from, bytes);
  }
  void synchronize() override {
    stream_->enter();
    stream_->synchronize();
  }
  void trim() noexcept override {
    cudaSetDevice(stream_->device());
    cudaStreamSynchronize(stream_->main());
    cudaMemPoolTrimTo(pool_, 0);
  }
  std::size_t available() const override {
    std::size_t free = 0, total = 0;
    std::uint64_t reserved = 0, used = 0;
    cudaSetDevice(stream_->device());
    if (cudaMemGetInfo(&free, &total) != cudaSuccess ||
        cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) !=
            cudaSuccess ||
        cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
      cudaGetLastError();
      return device::kUnknown;
    }
    free += reserved - used;
    if (cap_ != 0) free = std::min(free, cap_ - std::min(cap_, used_.load()));
    return free;
  }
  bool host_accessible() const override { return false; }

 private:
  /// A point in the work of a stream.
  class Event {
   public:
    explicit Event(const Stream& stream) {
      stream.check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
      const cudaError_t code = cudaEventRecord(event_, stream.main());
      if (code != cudaSuccess) cudaEventDestroy(event_);
      stream.check(code, "cudaEventRecord");
    }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    cudaEvent_t get() const { return event_; }

   private:
    cudaEvent_t event_ = nullptr;
  };

  template <bool kGather, class At>
  void interleave(void* together, std::size_t count, std::size_t bytes, std::size_t rows,
                  const At& at) const {
    stream_->enter();
    const std::size_t pieces = bytes / sizeof(int4);
    constexpr unsigned kThreads = 256;
    for (std::size_t first = 0; first < count && rows != 0; first += kMaxBlocks) {
      Blocks blocks;
      const std::size_t now = std::min(kMaxBlocks, count - first);
      for (std::size_t k = 0; k < now; ++k) blocks.at[k] = at(first + k);
      const dim3 grid(static_cast<unsigned>((pieces + kThreads - 1) / kThreads),
                      static_cast<unsigned>(rows), static_cast<unsigned>(now));
      interleave_kernel<kGather>
          <<<grid, kThreads, 0, stream_->get()>>>(blocks, together, pieces, count, first);
      check_launch(*stream_, "interleaving a batch");
    }
  }
  void copied(cudaError_t code) const {
    stream_->check(stream_->ask(Call::copy, [&] { return code; }), "copy");
  }
  /// Opens the source's pool to this device. False if the GPUs have no way to each other.
  bool reach(GpuMemory& source) const {
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, stream_->device(), source.stream_->device()) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    if (can == 0) return false;
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, stream_->device()};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    source.stream_->check(cudaMemPoolSetAccess(source.pool_, &access, 1), "peer access");
    return true;
  }

  const std::shared_ptr<const Stream> stream_;
  const std::size_t cap_;
  std::atomic<std::size_t> used_ = 0;
  Staging staging_;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace

std::shared_ptr<device::Memory> make_memory(std::shared_ptr<const Stream> stream, std::size_t cap) {
  return std::make_shared<GpuMemory>(std::move(stream), cap);
}

}  // namespace jali::device::cuda
