// The stream of a GPU, and memory ordered with it.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "jali/base/at_fork.h"
#include "jali/device/faults.h"
#include "jali/device/memory.h"
#include "jali/device/stream.h"

namespace jali::device::cuda {

/// A stream and the GPU it is on. All work of one device runs on one stream, but for a thread that records: its work
/// goes to the recording.
class Stream final : public device::Stream {
 public:
  explicit Stream(int device, std::shared_ptr<device::Faults> faults = nullptr);  // throws NoDevice
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Where the calling thread's work goes.
  cudaStream_t get() const { return recording() ? recorder_ : stream_; }
  /// Where work goes that is not recorded.
  cudaStream_t main() const { return stream_; }
  int device() const { return device_; }
  /// Of the code that runs here (code_generation).
  int generation() const { return generation_; }
  /// Whether launch (launch.cuh) lets kernels begin while their predecessors end.
  bool overlaps() const { return generation_ >= 9; }
  /// Whether clusters may have 16 blocks, where 8 are what every GPU grants.
  bool wide_clusters() const { return wide_clusters_; }
  /// Makes the device current for the calling thread; every entry point calls it. Throws DeviceLost when
  /// the device failed before: nothing that its engines hold can be trusted then.
  void enter() const;
  void synchronize() const override;
  /// Whether it points to memory of this device.
  bool owns(const void* data) const;

  /// The answer of a call of the driver that was made for this device. Throws what fits it; remembers
  /// failures that the device does not come back from. asked: bytes of the GPU's memory.
  void check(cudaError_t code, const char* what, std::size_t asked = device::kUnknown) const;
  /// The same for a call that faults may be put into: `call` is made unless the fault stands for it.
  template <class F>
  cudaError_t ask(device::Call kind, F&& call) const {
    const cudaError_t fault = faults_ == nullptr ? cudaSuccess : injected(kind);
    return fault == cudaSuccess ? call() : fault;
  }
  /// After every launch; code: of a launch that returns one.
  void launched(const char* kernel, cudaError_t code = cudaGetLastError()) const;

  /// Whether the calling thread is recording.
  bool recording() const override {
    return recording_thread_.load(std::memory_order_acquire) == std::this_thread::get_id();
  }
  /// Records what the calling thread asks of the stream until end(). One thread at a time: its maker
  /// holds recording_mutex() from before until after.
  class Recording {
   public:
    explicit Recording(const Stream& stream);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    cudaGraph_t end();  // the caller's

   private:
    const Stream& stream_;
  };
  std::mutex& recording_mutex() const { return recording_; }

 private:
  cudaError_t injected(device::Call kind) const;
  [[noreturn]] void lose(const std::string& message) const;

  int device_ = 0, generation_ = 0;
  bool wide_clusters_ = false;
  cudaStream_t stream_ = nullptr, recorder_ = nullptr;
  std::shared_ptr<device::Faults> faults_;
  mutable std::mutex recording_;
  mutable std::atomic<std::thread::id> recording_thread_;
  mutable std::atomic<bool> lost_ = false;
  mutable std::mutex lost_mutex_;
  mutable std::string lost_message_;
  bool forked_ = false;  // a child has no GPU of its parent's
  AtFork at_fork_;
};

/// cap: bytes that it hands out at most; 0 for as many as the GPU has.
std::shared_ptr<device::Memory> make_memory(std::shared_ptr<const Stream> stream,
                                            std::size_t cap = 0);

}  // namespace jali::device::cuda
