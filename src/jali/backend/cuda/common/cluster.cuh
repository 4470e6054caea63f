// How the blocks of a cluster (compute capability 9) meet and write into each other's shared
// memory.
#pragma once

#include <cstdint>

namespace jali::backend::cuda::cluster {

__device__ __forceinline__ void arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
// Does not wait for stores, because begin_receiving has a fence of its own.
__device__ __forceinline__ void arrive_relaxed() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ unsigned rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}
/// The address of a block's shared memory as seen by the blocks of its cluster.
__device__ __forceinline__ unsigned remote(unsigned shared, int rank) {
  unsigned at = shared;
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared), "r"(rank));
#endif
  return at;
}
// Residues travel by asynchronous stores that the receiving block's barrier counts in bytes: a
// block waits for what it is to receive and for nothing else. Called by all threads.
__device__ __forceinline__ void begin_receiving(unsigned barrier, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
  }
  __syncwarp();
#endif
}
__device__ __forceinline__ void received(unsigned barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier)
      : "memory");
#endif
}
__device__ __forceinline__ void send(unsigned at, unsigned barrier, std::uint32_t x) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(at),
      "r"(x), "r"(barrier)
      : "memory");
#endif
}
__device__ __forceinline__ void send(unsigned at, unsigned barrier, std::uint64_t x) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(at),
      "l"(x), "r"(barrier)
      : "memory");
#endif
}
__device__ __forceinline__ void send(unsigned at, unsigned barrier, double x) {
  send(at, barrier, static_cast<std::uint64_t>(__double_as_longlong(x)));
}

__device__ __forceinline__ void send(unsigned at, unsigned barrier, const double2& x) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::
          "r"(at),
      "l"(__double_as_longlong(x.x)), "l"(__double_as_longlong(x.y)), "r"(barrier)
      : "memory");
#endif
}
// Barriers for messages that come again and again. One thread makes them, and says so before the
// cluster meets. It expects the bytes of each message, and again as soon as one has come;
// `received` waits for messages of even and odd numbers. It acquires at the block's scope: that
// suffices for asynchronous stores, whose bytes have arrived if they are counted. At the cluster's
// scope it would also empty the L1 cache.
__device__ __forceinline__ void make_barrier(unsigned barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
#endif
}
__device__ __forceinline__ void barriers_are_made() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void expect(unsigned barrier, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#endif
}
__device__ __forceinline__ void received(unsigned barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
#endif
}

}  // namespace jali::backend::cuda::cluster
