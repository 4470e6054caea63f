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

/// A stream and the GPU on which it runs. All work of one device runs on one stream, except that
/// the work of a thread that records goes to the recording.
class Stream final : public device::Stream {
 public:
  explicit Stream(int device, std::shared_ptr<device::Faults> faults = nullptr);  // throws NoDevice
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The stream for the calling thread's work.
  cudaStream_t get() const { return recording() ? recorder_ : stream_; }
  /// The stream for work that is not recorded.
  cudaStream_t main() const { return stream_; }
  int device() const { return device_; }
  /// The generation of the code that runs here (code_generation).
  int generation() const { return generation_; }
  /// Whether launch (launch.cuh) lets kernels begin while their predecessors end.
  bool overlaps() const { return generation_ >= 9; }
  /// Whether clusters may have 16 blocks; every GPU with clusters grants 8.
  bool wide_clusters() const { return wide_clusters_; }
  /// Makes the device current for the calling thread. Every entry point calls it. Throws DeviceLost
  /// if the device failed before, because then nothing that its engines hold can be trusted.
  void enter() const;
  void synchronize() const override;
  /// Whether data points to memory of this device.
  bool owns(const void* data) const;

  /// Checks the answer of the driver to a call that was made for this device. Throws the error that
  /// fits, and remembers failures after which the device cannot be used. asked: the bytes of the
  /// GPU's memory that the call asked for.
  void check(cudaError_t code, const char* what, std::size_t asked = device::kUnknown) const;
  /// Makes a call and gives its answer. If a test has put a fault in its place, gives the fault's
  /// answer instead.
  template <class F>
  cudaError_t ask(device::Call kind, F&& call) const {
    const cudaError_t fault = faults_ == nullptr ? cudaSuccess : injected(kind);
    return fault == cudaSuccess ? call() : fault;
  }
  /// Must be called after every launch. code: the answer of the launch. Throws LaunchFailed or
  /// DeviceLost.
  void launched(const char* kernel, cudaError_t code = cudaGetLastError()) const;

  /// Whether the calling thread is recording.
  bool recording() const override {
    return recording_thread_.load(std::memory_order_acquire) == std::this_thread::get_id();
  }
  /// Records what the calling thread asks of the stream until end(). Only one thread may record at
  /// a time: whoever creates a Recording holds recording_mutex() before and until it is destroyed.
  class Recording {
   public:
    explicit Recording(const Stream& stream);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    cudaGraph_t end();  // the caller owns the graph

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
  bool forked_ = false;  // this is a child process, which cannot use its parent's GPU
  AtFork at_fork_;
};

/// The memory of a GPU. cap: the most bytes that it hands out; 0 stands for as many as the GPU has.
std::shared_ptr<device::Memory> make_memory(std::shared_ptr<const Stream> stream,
                                            std::size_t cap = 0);

}  // namespace jali::device::cuda
