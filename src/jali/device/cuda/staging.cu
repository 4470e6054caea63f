#include <algorithm>
#include <cstring>

#include "jali/base/error.h"
#include "jali/base/wipe.h"
#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/staging.cuh"
#include "jali/device/processor.h"

namespace jali::device::cuda {

Staging::~Staging() {
  cudaSetDevice(stream_->device());
  cudaStreamSynchronize(stream_->main());
  for (const Slot& slot : slots_) {
    if (slot.data != nullptr) {
      wipe(slot.data, kBytes);
      cudaFreeHost(slot.data);
    }
    if (slot.done != nullptr) cudaEventDestroy(slot.done);
  }
}

Staging::Slot& Staging::next() {
  Slot& slot = slots_[turn_++ % slots_.size()];
  if (slot.done == nullptr) {
    stream_->check(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming), "cudaEventCreate");
  }
  if (slot.data == nullptr) {
    const cudaError_t code = stream_->ask(device::Call::allocate, [&] {
      return cudaHostAlloc(&slot.data, kBytes, cudaHostAllocDefault);
    });
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw OutOfMemory(device::not_allocated(kBytes, device::host_memory()->available(),
                                              "copies, of the host's pinned memory") +
                        ": end programs that hold the host's memory, or raise the limit on locked "
                        "memory (ulimit -l)");
    }
    stream_->check(code, "pinned host memory");
  } else {
    stream_->check(cudaEventSynchronize(slot.done), "waiting for a copy");
  }
  return slot;
}

template <class Body>
void Staging::in_parts(std::size_t bytes, const Body& body) {
  if (bytes <= kPart) {
    body(std::size_t{0}, bytes);
    return;
  }
  if (pool_ == nullptr) {
    pool_ = std::make_unique<ThreadPool>(std::min(kThreads, device::cores()));
  }
  pool_->parallel((bytes + kPart - 1) / kPart, [&](std::size_t part) {
    const std::size_t at = part * kPart;
    body(at, std::min(kPart, bytes - at));
  });
}

void Staging::copy_in(void* to, const void* host, std::size_t bytes, bool secret) {
  std::lock_guard lock(mutex_);
  for (std::size_t at = 0; at < bytes; at += kBytes) {
    const std::size_t count = std::min(kBytes, bytes - at);
    Slot& slot = next();
    in_parts(count, [&](std::size_t from, std::size_t part) {
      std::memcpy(static_cast<std::byte*>(slot.data) + from,
                  static_cast<const std::byte*>(host) + at + from, part);
    });
    stream_->check(stream_->ask(device::Call::copy,
                                [&] {
                                  return cudaMemcpyAsync(static_cast<std::byte*>(to) + at,
                                                         slot.data, count, cudaMemcpyHostToDevice,
                                                         stream_->main());
                                }),
                   "upload");
    stream_->check(cudaEventRecord(slot.done, stream_->main()), "cudaEventRecord");
    if (!secret) continue;
    stream_->check(cudaEventSynchronize(slot.done), "waiting for a copy");
    wipe(slot.data, count);
  }
}

void Staging::copy_out(void* host, const void* from, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  // While one piece crosses the bus, the piece before is copied on the host. Pieces are wiped,
  // because they may be decrypted numbers.
  std::size_t pending_at = 0, pending_count = 0;
  const auto drain = [&](Slot& slot) {
    stream_->check(
        stream_->ask(device::Call::synchronize, [&] { return cudaEventSynchronize(slot.done); }),
        "download");
    in_parts(pending_count, [&](std::size_t at, std::size_t part) {
      std::byte* piece = static_cast<std::byte*>(slot.data) + at;
      std::memcpy(static_cast<std::byte*>(host) + pending_at + at, piece, part);
      wipe(piece, part);
    });
  };
  Slot* last = nullptr;
  for (std::size_t at = 0; at < bytes; at += kBytes) {
    const std::size_t count = std::min(kBytes, bytes - at);
    Slot& slot = next();
    stream_->check(stream_->ask(device::Call::copy,
                                [&] {
                                  return cudaMemcpyAsync(
                                      slot.data, static_cast<const std::byte*>(from) + at, count,
                                      cudaMemcpyDeviceToHost, stream_->main());
                                }),
                   "download");
    stream_->check(cudaEventRecord(slot.done, stream_->main()), "cudaEventRecord");
    if (last != nullptr) drain(*last);
    last = &slot;
    pending_at = at;
    pending_count = count;
  }
  if (last != nullptr) drain(*last);
}

}  // namespace jali::device::cuda
