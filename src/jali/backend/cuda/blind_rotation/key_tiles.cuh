// The bootstrapping key in the order in which the rotation reads it (rotation_kernel.cuh).
#pragma once

#include "jali/backend/cuda/blind_rotation/rotation_shape.cuh"

namespace jali::backend::cuda {

namespace {

// Words of GGSW ciphertexts to tiles of the key.
template <class S>
__global__ void __launch_bounds__(128)
    prepare_kernel(double2* key, const void* ggsws, const double2* low_table, int torus,
                   unsigned first, unsigned levels, unsigned units, unsigned polynomials) {
  constexpr int G = S::G, K1 = S::k1, N = S::N, P = S::tile_points;
  constexpr int kAccBits = 8 * sizeof(typename S::Word);
  __shared__ __align__(16) double buffers[fft::exchange_doubles(128)];
  __shared__ double2 low[G * fft::low_entries(G)];
  for (unsigned i = threadIdx.x; i < G * fft::low_entries(G); i += blockDim.x)
    low[i] = low_table[i];
  __syncthreads();
  const int g = static_cast<int>(threadIdx.x % G);
  double* const buffer = buffers + threadIdx.x / G * fft::exchange_doubles(G);
  const unsigned wanted = blockIdx.x * (blockDim.x / G) + threadIdx.x / G;
  const unsigned polynomial = min(wanted, polynomials - 1);
  double2 x[kPoints];
  const double scale = (torus == 64 && kAccBits == 32 ? 0x1p-32 : 1.0) / S::M *
                       (torus == 32 && kAccBits == 64 ? 0x1p32 : 1.0);
  const auto read = [&](int i) {
    const std::size_t from = static_cast<std::size_t>(polynomial) * N + i;
    if (torus == 64) {
      return static_cast<double>(static_cast<const std::int64_t*>(ggsws)[from]) * scale;
    }
    return static_cast<double>(static_cast<const std::int32_t*>(ggsws)[from]) * scale;
  };
#pragma unroll
  for (int i = 0; i < kPoints; ++i) x[i] = make_double2(read(g + G * i), read(g + G * i + S::M));
  fft::forward<G>(x, buffer, low, g, [] { __syncwarp(); });
  if (wanted >= polynomials) return;
  // polynomial = ((step units + unit) (k + 1) levels + row levels + level) (k + 1) + column
  unsigned rest = polynomial;
  const unsigned column = rest % K1;
  rest /= K1;
  const unsigned level = rest % levels;
  rest /= levels;
  const unsigned row = rest % K1;
  rest /= K1;
  const unsigned unit = rest % units, step = first + rest / units;
  const unsigned parts = units / S::fixed;
#pragma unroll
  for (int i = 0; i < kPoints; ++i) {
    const std::size_t tile =
        ((static_cast<std::size_t>(step) * levels + level) * S::tiles + i / P) * parts +
        unit / S::fixed;
    key[tile * S::tile + unit % S::fixed * S::part + ((row * K1 + column) * P + i % P) * G + g] =
        x[i];
  }
}

}  // namespace

}  // namespace jali::backend::cuda
