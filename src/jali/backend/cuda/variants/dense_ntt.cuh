// Mathematics. With N = R C (R = 2^m1 rows r of C = 2^m2 columns c) and brv over m1 or m2 bits,
//   y[j][c]       = sum_r A[j][r] x[r][c],            A[j][r] = psi^(C (2 brv(j) + 1) r),
//   X[j C + k]    = sum_c B[k][c] T[j][c] y[j][c],    T[j][c] = psi^((2 brv(j) + 1) c),
//                                                     B[k][c] = psi^(2 R brv(k) c):
// the transform in two matrix products. The inverse has the inverses of all powers, the products in
// the other order, and N^-1 in T.
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

/// One direction's matrices of every prime.
template <class W>
struct DenseMatrices {
  Constant rows;  // A: Stored[prime][in][out]
  Constant columns;  // B: Stored[prime][in][out]
  Constant twist;  // T: F[prime][N]
  // w32 only, for tensor cores: byte p of A and B, uint8_t[prime][p][out][in]
  Constant row_bytes, column_bytes;
};

template <class W>
struct DenseTables {
  int log_rows, log_columns;
  DenseMatrices<W> forward, inverse;
  /// bytes: with what tensor cores multiply.
  DenseTables(const Stream& stream, const Config& config, std::span<const std::uint64_t> roots,
              bool bytes);
};

/// Both products on CUDA cores, in place.
template <class W, bool kInverse>
void dense_ntt(const Stream& stream, const DenseTables<W>& dense, const typename W::Prime* primes,
               typename W::Stored* data, const Limbs& limbs, unsigned limb_count, unsigned batch,
               int log_n);
/// The same on INT8 tensor cores.
template <bool kInverse>
void tensor_ntt(const Stream& stream, const DenseTables<W32>& dense, const W32::Prime* primes,
                std::uint32_t* data, const Limbs& limbs, unsigned limb_count, unsigned batch,
                int log_n);

/// A tile of a matrix product: all 2^log_in inputs of some columns. Columns of the row-wise product
/// are neighbours in memory (kAcross), those of the other are runs of 2^log_in words.
template <bool kAcross>
struct DenseTile {
  int log_n, log_in;
  __device__ __forceinline__ int place(int tile_column, int k) const {
    return kAcross ? (k << (log_n - log_in)) + tile_column : (tile_column << log_in) + k;
  }
};

}  // namespace jali::backend::cuda
