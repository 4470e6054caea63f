// B = sum_c A_c S_c + M + E by the schoolbook: N^2 masked sums of words for each product, in
// registers (glwe_tile.h). Of 2^13 ciphertexts with N = 2048 that is some 10 ms, less than what a
// transform would save in code and in secret tables. A thread block has one tile of coefficients of
// one ciphertext. What is secret stays in its registers and shared memory.
#include <algorithm>

#include "jali/backend/cuda/sampling/chacha.cuh"
#include "jali/backend/cuda/secret/glwe.cuh"
#include "jali/backend/cuda/secret/glwe_tile.h"
#include "jali/backend/cuda/secret/wiped.cuh"

namespace jali::backend::cuda {

namespace {

constexpr std::size_t kMostRows = 65535;  // of a grid, along y

struct GadgetCall {
  const std::uint8_t *secret, *bits;
  ChachaKey errors;
  std::uint64_t first;  // row of the key
  unsigned k, n, tile, levels;
  int base_log, noise_bits;
  bool ggsw;
};

/// sum += the errors of coefficients t .. t + 7, t a multiple of 8.
template <class Word>
__device__ void add_errors(Word (&sum)[glwe::kEach], const GadgetCall& call, std::uint64_t row,
                           unsigned t) {
  std::uint32_t x[16];
  const bool wide = call.noise_bits > 30;  // words of 8 bytes
  chacha20(call.errors, wide ? t / 8 : t / 16, row, x);
#pragma unroll
  for (unsigned j = 0; j < glwe::kEach; ++j) {
    const std::uint64_t narrow = t % 16 == 0 ? x[j] : x[j + 8];
    const std::uint64_t u =
        wide ? x[2 * j] | static_cast<std::uint64_t>(x[2 * j + 1]) << 32 : narrow;
    sum[j] += static_cast<Word>(glwe::tuniform(u, call.noise_bits));
  }
}

/// Row (c, j) of the bit m: -m S_c 2^shift if c < k, and m 2^shift if c = k.
template <class Word>
__device__ void add_message(Word (&sum)[glwe::kEach], const GadgetCall& call, std::uint64_t row,
                            unsigned t) {
  const glwe::GadgetRow at = glwe::gadget_row(row, call.k, call.levels, call.base_log,
                                              static_cast<int>(8 * sizeof(Word)), call.ggsw);
  const Word bit = call.bits[at.bit];
  if (at.component == call.k) {
    if (t == 0) sum[0] += bit << at.shift;
    return;
  }
  const std::uint8_t* const s = call.secret + std::size_t{at.component} * call.n + t;
#pragma unroll
  for (unsigned j = 0; j < glwe::kEach; ++j) sum[j] -= (bit & s[j]) << at.shift;
}

template <class Word>
__global__ void __launch_bounds__(glwe::kMostTile / glwe::kEach)
    gadget_kernel(Word* out, const Word* masks, const __grid_constant__ GadgetCall call) {
  after_predecessor();
  extern __shared__ std::uint64_t shared[];
  Word* const window = reinterpret_cast<Word*>(shared);
  auto* const bits = reinterpret_cast<std::uint8_t*>(window + glwe::window_words(call.tile));
  const std::size_t row = blockIdx.y;
  const unsigned n = call.n, tile = call.tile, t = blockIdx.x;
  Word sum[glwe::kEach] = {};
  for (unsigned c = 0; c < call.k; ++c) {
    const Word* const a = masks + (row * call.k + c) * n;
    const std::uint8_t* const s = call.secret + std::size_t{c} * n;
    for (unsigned i = 0; i < n / tile; ++i) {
      __syncthreads();  // the tile before has been read
      for (unsigned e = threadIdx.x; e < 2 * tile; e += blockDim.x) {
        window[glwe::place(e)] = glwe::window_word(a, n, tile, t, i, e);
      }
      bits[threadIdx.x] = glwe::packed(s + i * tile + threadIdx.x * glwe::kEach);
      __syncthreads();
      glwe::add_tile(sum, window, bits, tile, threadIdx.x);
    }
  }
  const unsigned first = t * tile + threadIdx.x * glwe::kEach;
  add_errors(sum, call, call.first + row, first);
  add_message(sum, call, call.first + row, first);
#pragma unroll
  for (unsigned j = 0; j < glwe::kEach; ++j) out[row * n + first + j] = sum[j];
}

template <class Word>
void encrypt_words(const Stream& stream, Word* out, std::size_t count, const Word* masks,
                   GadgetCall& call) {
  const std::size_t bytes = glwe::window_words(call.tile) * sizeof(Word) + call.tile / glwe::kEach;
  for (std::size_t i = 0; i < count; i += kMostRows) {
    const auto rows = static_cast<unsigned>(std::min(kMostRows, count - i));
    launch(stream, "encrypt_gadget", gadget_kernel<Word>, dim3(call.n / call.tile, rows),
           call.tile / glwe::kEach, bytes, 1, out + i * call.n, masks + i * call.k * call.n, call);
    call.first += rows;
  }
}

}  // namespace

void encrypt_gadget(const Stream& stream, const TfheConfig& config, void* out, std::size_t count,
                    const void* masks, const std::uint8_t* secret, const GadgetBits& bits,
                    const Draws& draws) {
  GadgetCall call{};
  call.secret = secret;
  call.bits = bits.bits;
  call.errors = key_of(draws.errors);
  const Wiped wiped(call.errors);
  call.first = draws.first;
  call.k = static_cast<unsigned>(config.k.value);
  call.n = static_cast<unsigned>(config.N.value);
  call.tile = std::min(call.n, glwe::kMostTile);
  call.levels = static_cast<unsigned>(config.rotation_gadget.levels);
  call.base_log = config.rotation_gadget.base_log;
  call.noise_bits = draws.noise_bits;
  call.ggsw = bits.ggsw;
  if (config.torus == Torus::t64) {
    encrypt_words(stream, static_cast<std::uint64_t*>(out), count,
                  static_cast<const std::uint64_t*>(masks), call);
  } else {
    encrypt_words(stream, static_cast<std::uint32_t*>(out), count,
                  static_cast<const std::uint32_t*>(masks), call);
  }
}

}  // namespace jali::backend::cuda
