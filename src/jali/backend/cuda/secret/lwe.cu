// One warp sums the products of one ciphertext. Masks that come from a seed are never in memory.
#include "jali/backend/cuda/sampling/chacha.cuh"
#include "jali/backend/cuda/secret/glwe_tile.h"
#include "jali/backend/cuda/secret/lwe.cuh"
#include "jali/backend/cuda/secret/wiped.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kWarp = 32, kThreads = 128, kRows = kThreads / kWarp;  // of a thread block

template <class Word>
__device__ Word warp_sum(Word sum) {
#pragma unroll
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    sum += static_cast<Word>(__shfl_xor_sync(~0u, sum, step));
  }
  return sum;
}
template <class Word>
__device__ Word masked(Word word, std::uint8_t bit) {
  return word & (Word{0} - static_cast<Word>(bit));
}

struct BodiesCall {
  ChachaKey masks, errors;
  std::uint64_t first;
  std::size_t count;
  unsigned dimension;
  int noise_bits;
};

template <class Word>
__global__ void __launch_bounds__(kThreads)
    bodies_kernel(Word* out, const std::uint8_t* secret, const std::uint64_t* messages,
                  const __grid_constant__ BodiesCall call) {
  after_predecessor();
  const std::size_t row = std::size_t{blockIdx.x} * kRows + threadIdx.x / kWarp;
  if (row >= call.count) return;
  constexpr unsigned kWords = 64 / sizeof(Word);  // of a ChaCha20 block
  const unsigned lane = threadIdx.x % kWarp;
  Word sum = 0;
  std::uint32_t x[16];
  for (unsigned block = lane; block * kWords < call.dimension; block += kWarp) {
    chacha20(call.masks, block, call.first + row, x);
#pragma unroll
    for (unsigned i = 0; i < kWords; ++i) {
      const unsigned at = block * kWords + i;
      if (at >= call.dimension) break;
      Word word;
      if constexpr (sizeof(Word) == 4) {
        word = x[i];
      } else {
        word = x[2 * i] | static_cast<Word>(x[2 * i + 1]) << 32;
      }
      sum += masked(word, secret[at]);
    }
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  chacha20(call.errors, 0, call.first + row, x);
  const std::uint64_t u =
      call.noise_bits > 30 ? x[0] | static_cast<std::uint64_t>(x[1]) << 32 : std::uint64_t{x[0]};
  out[row] = static_cast<Word>(sum + static_cast<Word>(messages[row]) +
                               static_cast<Word>(glwe::tuniform(u, call.noise_bits)));
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    phases_kernel(std::uint64_t* out, const Word* in, std::size_t count, unsigned dimension,
                  const std::uint8_t* secret) {
  after_predecessor();
  const std::size_t row = std::size_t{blockIdx.x} * kRows + threadIdx.x / kWarp;
  if (row >= count) return;
  const Word* const from = in + row * (std::size_t{dimension} + 1);
  const unsigned lane = threadIdx.x % kWarp;
  Word sum = 0;
  for (unsigned i = lane; i < dimension; i += kWarp) sum += masked(from[i], secret[i]);
  sum = warp_sum(sum);
  if (lane == 0) out[row] = static_cast<Word>(from[dimension] - sum);
}

dim3 grid(std::size_t rows) { return dim3(static_cast<unsigned>((rows + kRows - 1) / kRows)); }

}  // namespace

void encrypt_bodies(const Stream& stream, void* out, std::size_t count, Torus torus,
                    LweDimension dimension, const std::uint8_t* secret,
                    const std::uint64_t* messages, const Draws& draws) {
  BodiesCall call{key_of(draws.masks),
                  key_of(draws.errors),
                  draws.first,
                  count,
                  static_cast<unsigned>(dimension.value),
                  draws.noise_bits};
  const Wiped wiped(call.errors);
  if (torus == Torus::t64) {
    launch(stream, "encrypt_bodies", bodies_kernel<std::uint64_t>, grid(count), kThreads, 0, 1,
           static_cast<std::uint64_t*>(out), secret, messages, call);
  } else {
    launch(stream, "encrypt_bodies", bodies_kernel<std::uint32_t>, grid(count), kThreads, 0, 1,
           static_cast<std::uint32_t*>(out), secret, messages, call);
  }
}

void phases(const Stream& stream, std::uint64_t* out, ConstLweView in, const std::uint8_t* secret) {
  const auto dimension = static_cast<unsigned>(in.dimension.value);
  if (in.torus == Torus::t64) {
    launch(stream, "phases", phases_kernel<std::uint64_t>, grid(in.count), kThreads, 0, 1, out,
           static_cast<const std::uint64_t*>(in.data), in.count, dimension, secret);
  } else {
    launch(stream, "phases", phases_kernel<std::uint32_t>, grid(in.count), kThreads, 0, 1, out,
           static_cast<const std::uint32_t*>(in.data), in.count, dimension, secret);
  }
}

}  // namespace jali::backend::cuda
