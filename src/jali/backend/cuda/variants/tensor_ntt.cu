// Mathematics: dense_ntt.cuh, with every 32-bit word split into bytes (TensorFHE's segmentation):
//   sum_k m_k x_k = sum_{a, b} 2^(8 (a + b)) sum_k m_k,a x_k,b,  a, b = 0 .. 3,
// and the products of equal a + b summed in one accumulator (its fusion): at most 4 * 512 products
// of bytes, below 2^27.
//
// Kernel. A block splits all inputs of 16 columns into bytes in shared memory. A warp computes 16
// outputs of the 16 columns by mma.m16n8k32 (u8 x u8 -> s32), 32 of them for 32 inputs, in 7
// accumulators each.
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/variants/dense_ntt.cuh"

namespace jali::backend::cuda {

namespace {

constexpr int kThreads = 256, kColumns = 16, kDiagonals = 7;

__device__ __forceinline__ void multiply_add(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                             const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// sum_d 2^(8 d) diagonal[d] modulo q.
__device__ __forceinline__ std::uint32_t recombine(const std::int32_t (&diagonal)[kDiagonals],
                                                   const W32::Prime& prime) {
  const auto part = [&](int d) { return static_cast<std::uint64_t>(diagonal[d]); };
  const std::uint64_t low = part(0) + (part(1) << 8) + (part(2) << 16) + (part(3) << 24);
  const std::uint64_t high = part(4) + (part(5) << 8) + (part(6) << 16);  // times 2^32
  const std::uint32_t h = W32::mul_lazy(W32::total({high}, prime), prime.beta, prime);
  return W32::store(W32::total({low}, prime) + h, prime);
}

template <bool kAcross, bool kInverse>
__global__ void __launch_bounds__(kThreads)
    tensor_kernel(std::uint32_t* data, DenseTile<kAcross> tile, Limbs limbs,
                  const W32::Prime* primes, const std::uint8_t* matrices,
                  const Factor<std::uint32_t>* twists) {
  extern __shared__ __align__(16) unsigned char memory[];
  const unsigned index = limbs.prime[blockIdx.z];
  if (index == kSkip) return;
  const W32::Prime prime = primes[index];
  auto* row =
      data + ((static_cast<std::size_t>(blockIdx.z) * gridDim.y + blockIdx.y) << tile.log_n);
  const auto* twist = twists + (static_cast<std::size_t>(index) << tile.log_n);
  const auto* matrix = matrices + (static_cast<std::size_t>(index) << (2 * tile.log_in + 2));
  const int first = static_cast<int>(blockIdx.x) * kColumns, count = 1 << tile.log_in;
  const int pitch = count + 16;  // bytes; columns of a quarter warp start in different banks
  // Bytes of the inputs: [byte][column][k].
  for (int i = static_cast<int>(threadIdx.x); i < count * kColumns; i += kThreads) {
    const int k = kAcross ? i / kColumns : i % count, column = kAcross ? i % kColumns : i / count;
    const int at = tile.place(first + column, k);
    std::uint32_t x = row[at];
    if (!kAcross && !kInverse) x = W32::store(W32::mul_lazy(x, twist[at], prime), prime);
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      memory[(p * kColumns + column) * pitch + k] = static_cast<unsigned char>(x >> (8 * p));
    }
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) & 31, quad = lane >> 2, in_quad = lane & 3;
  for (int out = static_cast<int>(threadIdx.x) >> 5 << 4; out < count; out += kThreads / 32 * 16) {
    std::int32_t sums[2][kDiagonals][4] = {};
    for (int k = 0; k < count; k += 32) {
      std::uint32_t a[4][4];
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const auto* from =
            matrix + (static_cast<std::size_t>(p * count + out + quad) << tile.log_in);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          a[p][r] = *reinterpret_cast<const std::uint32_t*>(from + ((r & 1) * 8 << tile.log_in) +
                                                            k + (r >> 1) * 16 + in_quad * 4);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int p = 0; p < 4; ++p) {
          std::uint32_t b[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            b[r] = *reinterpret_cast<const std::uint32_t*>(
                memory + (p * kColumns + half * 8 + quad) * pitch + k + r * 16 + in_quad * 4);
          }
#pragma unroll
          for (int s = 0; s < 4; ++s) multiply_add(sums[half][s + p], a[s], b);
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        std::int32_t diagonal[kDiagonals];
#pragma unroll
        for (int d = 0; d < kDiagonals; ++d) diagonal[d] = sums[half][d][r];
        const int column = first + half * 8 + in_quad * 2 + (r & 1), k = out + quad + (r >> 1) * 8;
        const int at = tile.place(column, k);
        std::uint32_t y = recombine(diagonal, prime);
        if (!kAcross && kInverse) y = W32::store(W32::mul_lazy(y, twist[at], prime), prime);
        row[at] = y;
      }
    }
  }
}

}  // namespace

template <bool kInverse>
void tensor_ntt(const Stream& stream, const DenseTables<W32>& dense, const W32::Prime* primes,
                std::uint32_t* data, const Limbs& limbs, unsigned limb_count, unsigned batch,
                int log_n) {
  const DenseMatrices<W32>& m = kInverse ? dense.inverse : dense.forward;
  const auto product = [&](auto* kernel, auto tile, const Constant& matrix) {
    const std::size_t bytes = static_cast<std::size_t>(4 * kColumns) * ((1 << tile.log_in) + 16);
    const dim3 grid(static_cast<unsigned>((1 << (log_n - tile.log_in)) / kColumns), batch,
                    limb_count);
    kernel<<<grid, kThreads, bytes, stream.get()>>>(
        data, tile, limbs, primes, matrix.as<std::uint8_t>(), m.twist.as<Factor<std::uint32_t>>());
    check_launch(stream, "tensor ntt");
  };
  const DenseTile<true> across{log_n, dense.log_rows};
  const DenseTile<false> along{log_n, dense.log_columns};
  if constexpr (!kInverse) product(tensor_kernel<true, false>, across, m.row_bytes);
  product(tensor_kernel<false, kInverse>, along, m.column_bytes);
  if constexpr (kInverse) product(tensor_kernel<true, true>, across, m.row_bytes);
}

template void tensor_ntt<false>(const Stream&, const DenseTables<W32>&, const W32::Prime*,
                                std::uint32_t*, const Limbs&, unsigned, unsigned, int);
template void tensor_ntt<true>(const Stream&, const DenseTables<W32>&, const W32::Prime*,
                               std::uint32_t*, const Limbs&, unsigned, unsigned, int);

}  // namespace jali::backend::cuda
