// One thread makes one ChaCha20 block of a mask. A row lies along x, the rows along y.
#include <algorithm>

#include "jali/backend/cuda/sampling/chacha.cuh"
#include "jali/backend/cuda/seeded/expand.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kThreads = 128;
constexpr std::size_t kMostRows = 65535;  // of a grid, along y

// mask, body: words of 32 bits of a row.
__global__ void __launch_bounds__(kThreads)
    expand_kernel(std::uint32_t* out, const std::uint32_t* bodies, ChachaKey key,
                  std::uint64_t first, unsigned mask, unsigned body) {
  after_predecessor();
  const std::size_t row = blockIdx.y;
  const unsigned block = blockIdx.x * kThreads + threadIdx.x;
  std::uint32_t* const to = out + row * (std::size_t{mask} + body);
  if (block * 16 < mask) {
    std::uint32_t x[16];
    chacha20(key, block, first + row, x);
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) {
      if (block * 16 + i < mask) to[block * 16 + i] = x[i];
    }
  }
  for (unsigned i = block; i < body; i += gridDim.x * kThreads) {
    to[mask + i] = bodies[row * body + i];
  }
}

}  // namespace

void expand_rows(const Stream& stream, void* out, std::span<const std::uint8_t, 32> seed,
                 std::uint64_t first, const void* bodies, std::size_t mask_bytes,
                 std::size_t body_bytes, std::size_t count) {
  const auto mask = static_cast<unsigned>(mask_bytes / 4);
  const auto body = static_cast<unsigned>(body_bytes / 4);
  const unsigned blocks = (mask + 16 * kThreads - 1) / (16 * kThreads);
  const std::size_t row = std::size_t{mask} + body;
  for (std::size_t i = 0; i < count; i += kMostRows) {
    const auto rows = static_cast<unsigned>(std::min(kMostRows, count - i));
    launch(stream, "expand_rows", expand_kernel, dim3(blocks, rows), kThreads, 0, 1,
           static_cast<std::uint32_t*>(out) + i * row,
           static_cast<const std::uint32_t*>(bodies) + i * body, key_of(seed), first + i, mask,
           body);
  }
}

}  // namespace jali::backend::cuda
