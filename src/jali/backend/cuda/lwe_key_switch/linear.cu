#include <algorithm>
#include <cstring>

#include "jali/backend/cuda/lwe_key_switch/linear.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kMostRows = 65535;  // of a grid, along y

template <class Word>
__global__ void __launch_bounds__(256)
    combine_kernel(Word* out, const Word* in, DeviceCombination c, unsigned row_words,
                   unsigned first) {
  after_predecessor();
  const std::size_t row = first + blockIdx.y;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= row_words) return;
  Word sum = 0;
  for (std::uint32_t e = c.begin[row]; e < c.begin[row + 1]; ++e) {
    sum +=
        static_cast<Word>(c.weight[e]) * in[static_cast<std::size_t>(c.column[e]) * row_words + i];
  }
  if (c.constant != nullptr && i + 1 == row_words) sum += static_cast<Word>(c.constant[row]);
  out[row * row_words + i] = sum;
}

// Word i of coefficient h: A_c[h - i], negated if i > h.
template <class Word>
__global__ void __launch_bounds__(256)
    extract_kernel(Word* out, const Word* in, const std::uint32_t* coefficients, unsigned N,
                   unsigned large, std::size_t per, unsigned first) {
  after_predecessor();
  const std::size_t row = first + blockIdx.y;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = coefficients[row];
  if (i > large) return;
  const Word* const from = in + row / per * (large + N);
  Word word = from[large + h];
  if (i < large) {
    const unsigned c = i / N, at = i % N;
    word = from[c * N + ((h - at) & (N - 1))];
    if (at > h) word = 0 - word;
  }
  out[row * (large + 1) + i] = word;
}

struct Piece {
  unsigned char bytes[3968];
};
__global__ void __launch_bounds__(256)
    write_kernel(unsigned char* to, const __grid_constant__ Piece piece, unsigned bytes) {
  after_predecessor();
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = piece.bytes[i];
}

}  // namespace

void combine(const Stream& stream, LweView out, ConstLweView in, const DeviceCombination& c) {
  const auto words = static_cast<unsigned>(out.dimension.value + 1);
  for (std::size_t first = 0; first < out.count; first += kMostRows) {
    const dim3 grid((words + 255) / 256,
                    static_cast<unsigned>(std::min<std::size_t>(kMostRows, out.count - first)));
    if (out.torus == Torus::t64) {
      launch(stream, "combination", combine_kernel<std::uint64_t>, grid, 256, 0, 1,
             static_cast<std::uint64_t*>(out.data), static_cast<const std::uint64_t*>(in.data), c,
             words, static_cast<unsigned>(first));
    } else {
      launch(stream, "combination", combine_kernel<std::uint32_t>, grid, 256, 0, 1,
             static_cast<std::uint32_t*>(out.data), static_cast<const std::uint32_t*>(in.data), c,
             words, static_cast<unsigned>(first));
    }
  }
}

void extract(const Stream& stream, const TfheConfig& config, void* out, const void* in,
             const std::uint32_t* coefficients, std::size_t rows, std::size_t per) {
  const auto large = static_cast<unsigned>(config.large().value);
  const auto N = static_cast<unsigned>(config.N.value);
  for (std::size_t first = 0; first < rows; first += kMostRows) {
    const dim3 grid(large / 256 + 1,
                    static_cast<unsigned>(std::min<std::size_t>(kMostRows, rows - first)));
    if (config.torus == Torus::t64) {
      launch(stream, "extraction", extract_kernel<std::uint64_t>, grid, 256, 0, 1,
             static_cast<std::uint64_t*>(out), static_cast<const std::uint64_t*>(in), coefficients,
             N, large, per, static_cast<unsigned>(first));
    } else {
      launch(stream, "extraction", extract_kernel<std::uint32_t>, grid, 256, 0, 1,
             static_cast<std::uint32_t*>(out), static_cast<const std::uint32_t*>(in), coefficients,
             N, large, per, static_cast<unsigned>(first));
    }
  }
}

void upload(const Stream& stream, void* to, const void* host, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(Piece::bytes)) {
    Piece piece;
    const std::size_t now = std::min(sizeof(piece.bytes), bytes - at);
    std::memcpy(piece.bytes, static_cast<const unsigned char*>(host) + at, now);
    launch(stream, "upload", write_kernel, dim3(1), 256, 0, 1, static_cast<unsigned char*>(to) + at,
           piece, static_cast<unsigned>(now));
  }
}

}  // namespace jali::backend::cuda
