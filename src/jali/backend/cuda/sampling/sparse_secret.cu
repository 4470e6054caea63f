// Words are sorted by their upper 62 bits; the two others carry the value: 0, 1 for 1, 2 for -1.
// The sort is Batcher's bitonic network, whose comparisons depend on the size alone. Steps of short
// distance run on a tile in shared memory, each other step is a launch of its own.
#include <algorithm>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/sampling/chacha.cuh"
#include "jali/backend/cuda/sampling/sparse_secret.cuh"
#include "jali/base/wipe.h"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr int kLogTile = 11;
constexpr std::size_t kHeader = 16;  // bytes before the words: whether two keys are the same

// Blocks of eight words from `first` on.
__global__ void words_kernel(ChachaKey key, std::uint64_t nonce, unsigned first, unsigned n,
                             unsigned weight, std::uint64_t key_bits, std::uint64_t* words) {
  const unsigned block = blockIdx.x * blockDim.x + threadIdx.x;
  if (block * 8 >= n) return;
  std::uint32_t x[16];
  chacha20(key, first + block, nonce, x);
#pragma unroll
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t word = x[2 * i] | static_cast<std::uint64_t>(x[2 * i + 1]) << 32;
    const std::uint64_t value = block * 8 + i < weight ? 1 + (word & 1) : 0;
    words[block * 8 + i] = (word & key_bits) | value;
  }
}

/// Puts a and b in ascending or descending order without a branch.
__device__ inline void compare(std::uint64_t& a, std::uint64_t& b, bool descending) {
  const std::uint64_t out_of_order = std::uint64_t{0} - ((b < a) != descending);
  const std::uint64_t flip = (a ^ b) & out_of_order;
  a ^= flip, b ^= flip;
}
/// The first of the pair that thread `pair` compares at distance `step`.
__device__ inline unsigned first_of(unsigned pair, unsigned step) {
  return 2 * (pair & ~(step - 1)) + (pair & (step - 1));
}

__global__ void step_kernel(std::uint64_t* words, unsigned run, unsigned step) {
  const unsigned i = first_of(blockIdx.x * blockDim.x + threadIdx.x, step);
  compare(words[i], words[i + step], (i & run) != 0);
}
// The steps of the runs from `from` to `to` that fit a tile.
__global__ void tile_kernel(std::uint64_t* words, unsigned from, unsigned to, unsigned size) {
  __shared__ std::uint64_t tile[1u << kLogTile];
  std::uint64_t* const at = words + static_cast<std::size_t>(blockIdx.x) * size;
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x) tile[i] = at[i];
  for (unsigned run = from; run <= to; run *= 2) {
    for (unsigned step = ::min(run, size) / 2; step > 0; step /= 2) {
      __syncthreads();
      for (unsigned pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
        const unsigned i = first_of(pair, step);
        compare(tile[i], tile[i + step], ((blockIdx.x * size + i) & run) != 0);
      }
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x) at[i] = tile[i];
}

__global__ void values_kernel(const std::uint64_t* words, std::uint32_t* same, std::int8_t* out) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint64_t word = words[k];
  if (k > 0 && words[k - 1] >> 2 == word >> 2) atomicOr(same, 1u);
  out[k] = static_cast<std::int8_t>(static_cast<int>(word & 1) - static_cast<int>(word >> 1 & 1));
}

}  // namespace

std::size_t sparse_scratch(int log_n) { return kHeader + (std::size_t{8} << log_n); }

void sample_sparse(const Stream& stream, int log_n, unsigned weight,
                   std::span<const std::uint8_t, 32> seed, std::uint64_t nonce, unsigned draw,
                   void* scratch, std::int8_t* values, std::uint64_t key_bits) {
  const unsigned n = 1u << log_n, size = std::min(n, 1u << kLogTile);
  auto* same = static_cast<std::uint32_t*>(scratch);
  auto* words = reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(scratch) + kHeader);
  stream.check(cudaMemsetAsync(same, 0, kHeader, stream.get()), "sample_sparse");
  ChachaKey key = key_of(seed);
  words_kernel<<<(n / 8 + kThreads - 1) / kThreads, kThreads, 0, stream.get()>>>(
      key, nonce, draw * (n / 8), n, weight, key_bits, words);
  wipe(&key, sizeof(key));
  check_launch(stream, "sample_sparse");
  const auto tiles = [&](unsigned from, unsigned to) {
    tile_kernel<<<n / size, size / 2, 0, stream.get()>>>(words, from, to, size);
    check_launch(stream, "sample_sparse");
  };
  tiles(2, size);
  for (unsigned run = 2 * size; run <= n; run *= 2) {
    for (unsigned step = run / 2; step >= size; step /= 2) {
      step_kernel<<<n / 2 / kThreads, kThreads, 0, stream.get()>>>(words, run, step);
      check_launch(stream, "sample_sparse");
    }
    tiles(run, run);
  }
  values_kernel<<<n / kThreads, kThreads, 0, stream.get()>>>(words, same, values);
  check_launch(stream, "sample_sparse");
}

}  // namespace jali::backend::cuda
