// Copies between host and GPU. They go through pinned host memory, so that the host does not wait
// for uploads. The bus takes 45 to 55 GB/s and one thread copies 8 to 10, so several threads fill
// the pinned memory.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>

#include "jali/base/thread_pool.h"
#include "jali/device/cuda/stream.cuh"

namespace jali::device::cuda {

class Staging {
 public:
  explicit Staging(std::shared_ptr<const Stream> stream) : stream_(std::move(stream)) {}
  ~Staging();  // wipes
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Returns when `host` may change. The bytes may still be on their way. secret: they have
  /// arrived, and are wiped here.
  void copy_in(void* to, const void* host, std::size_t bytes, bool secret = false);
  /// Returns when the bytes have arrived. They are then nowhere else on the host.
  void copy_out(void* host, const void* from, std::size_t bytes);

 private:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;  // a copy of 0.2 ms across the bus
  struct Slot {
    void* data = nullptr;
    cudaEvent_t done = nullptr;  // its last copy
  };
  static constexpr std::size_t kPart = std::size_t{256} << 10;  // of a slot, for one thread
  static constexpr int kThreads = 8;

  Slot& next();  // waits until its last copy is done
  /// body(at, count) for the parts of so many bytes, on several threads if there are several parts.
  template <class Body>
  void in_parts(std::size_t bytes, const Body& body);

  const std::shared_ptr<const Stream> stream_;
  std::mutex mutex_;
  std::unique_ptr<ThreadPool> pool_;  // from the first copy of more than one part on
  std::array<Slot, 4> slots_{};
  std::size_t turn_ = 0;
};

}  // namespace jali::device::cuda
