// Tiles of the bootstrapping key on their way through shared memory.
#pragma once

#include <cstddef>

namespace jali::backend::cuda {

namespace {

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// A ring of tiles that the copy engine fills and all warps of the block read. The last warp that
// has read a tile asks for the tile that takes its place.
struct Ring {
  const double2* slots;
  unsigned full;  // barriers, one a slot
  unsigned left;  // counters: warps that have read the slot
  const double2* key;
  unsigned tile, tiles, count;  // numbers of a tile; tiles of the key; slots
  unsigned warps;  // that read
  unsigned slot = 0, parity = 0, at = 0;  // the next one
  static constexpr unsigned kNone = 1u << 30;
  unsigned before = kNone;  // of lane 0: how many warps had read the last tile before this one

  __device__ __forceinline__ void ask(unsigned into, unsigned which) const {
#if __CUDA_ARCH__ >= 900
    const unsigned barrier = full + 8 * into, bytes = tile * 16;
    const unsigned to = shared_address(slots) + into * bytes;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(key + static_cast<std::size_t>(which) * tile), "r"(bytes), "r"(barrier)
        : "memory");
#endif
  }
  __device__ __forceinline__ const double2* wait() const {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(full + 8 * slot),
        "r"(parity)
        : "memory");
#endif
    return slots + slot * tile;
  }
  // Counts this warp among those that have read the tile. The answer is looked at by the next
  // settle, so that nobody waits for it.
  __device__ __forceinline__ void release(bool last) {
    __syncwarp();
    settle(last);
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % 32 == 0) {
      // The release orders the warp's reads of the tile before the count. The last one sets the
      // counter back to 0. (An addition would be turned into one for the whole warp, whose result
      // is waited for.) racecheck does not follow counters, and reports every refill of a slot.
      asm volatile("atom.release.cta.shared::cta.inc.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "r"(left + 4 * slot), "r"(warps - 1)
                   : "memory");
    }
#endif
    if (++slot == count) {
      slot = 0;
      parity ^= 1;
    }
    if (++at == tiles) at = 0;
  }
  // If this was the last warp that read the tile before: asks for the tile that takes its place.
  // last: no round follows, so that what lies behind the end of the key is not asked for.
  __device__ __forceinline__ void settle(bool last) {
#if __CUDA_ARCH__ >= 900
    if (before + 1 == warps) {
      const unsigned freed = slot == 0 ? count - 1 : slot - 1;
      unsigned next = (at == 0 ? tiles : at) - 1 + count;
      const bool wraps = next >= tiles;
      if (wraps) next -= tiles;
      if (!(wraps && last)) {
        // With the last count, the first fence acquires the reads of all warps, and the second
        // orders them before the copy.
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        ask(freed, next);
      }
    }
    before = kNone;
#endif
  }
};

}  // namespace

}  // namespace jali::backend::cuda
