// Work beside a stream's own, on what the stream leaves idle of the GPU.
#pragma once

#include <cuda_runtime.h>

#include "jali/base/error.h"
#include "jali/device/cuda/stream.cuh"

namespace jali::device::cuda {

/// A mark in the order of a stream, for others to wait for.
class Mark {
 public:
  /// Of what `on` was asked for until now.
  Mark(const Stream& stream, cudaStream_t on) : stream_(stream) {
    stream_.check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    const cudaError_t code = cudaEventRecord(event_, on);
    if (code != cudaSuccess) cudaEventDestroy(event_);
    stream_.check(code, "cudaEventRecord");
  }
  ~Mark() { cudaEventDestroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  /// What `waits` is asked for from now on begins when all before the mark has ended.
  void before(cudaStream_t waits) const {
    stream_.check(cudaStreamWaitEvent(waits, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  const Stream& stream_;
  cudaEvent_t event_ = nullptr;
};

/// A second stream of a GPU. Whoever uses it begins with a mark of the first one, and makes the
/// first one wait for its own mark before it returns. So all memory stays ordered by the first
/// stream, threads may share the branch, and a graph that is recorded meanwhile has it as a
/// parallel path. Recordings have a branch of their own, since what others ask for must not be
/// recorded.
class Branch {
 public:
  explicit Branch(const Stream& stream) : stream_(stream) {
    stream_.enter();
    stream_.check(cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking), "cudaStreamCreate");
    const cudaError_t code = cudaStreamCreateWithFlags(&recorder_, cudaStreamNonBlocking);
    if (code != cudaSuccess) cudaStreamDestroy(main_);
    stream_.check(code, "cudaStreamCreate");
  }
  ~Branch() {
    cudaStreamDestroy(main_);
    cudaStreamDestroy(recorder_);
  }
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  /// The branch for the calling thread's work.
  cudaStream_t get() const { return stream_.recording() ? recorder_ : main_; }

 private:
  const Stream& stream_;
  cudaStream_t main_ = nullptr, recorder_ = nullptr;
};

}  // namespace jali::device::cuda
