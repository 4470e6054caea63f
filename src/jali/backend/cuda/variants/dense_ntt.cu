// Mathematics: dense_ntt.cuh.
//
// Kernel. A block holds all inputs of some columns in shared memory; a thread computes 4 outputs of
// 4 columns with sums that are reduced once in W::kFold products.
#include "jali/arith/bit_reverse.h"
#include "jali/arith/modulus.h"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/variants/dense_ntt.cuh"

namespace jali::backend::cuda {

namespace {

constexpr int kThreads = 256, kSide = 4;
/// Columns of a tile.
template <class W>
constexpr int kColumns = sizeof(typename W::R) == 4 ? 32 : 16;

template <class W, bool kAcross, bool kInverse>
__global__ void __launch_bounds__(kThreads)
    dense_kernel(typename W::Stored* data, DenseTile<kAcross> tile, Limbs limbs,
                 const typename W::Prime* primes, const typename W::Stored* matrices,
                 const Factor<typename W::R>* twists) {
  using R = typename W::R;
  constexpr int kC = kColumns<W>, kPitch = kC + 1;
  extern __shared__ __align__(16) unsigned char memory[];
  R* inputs = reinterpret_cast<R*>(memory);  // [k][column]
  const unsigned index = limbs.prime[blockIdx.z];
  if (index == kSkip) return;
  const typename W::Prime prime = primes[index];
  auto* row =
      data + ((static_cast<std::size_t>(blockIdx.z) * gridDim.y + blockIdx.y) << tile.log_n);
  const auto* twist = twists + (static_cast<std::size_t>(index) << tile.log_n);
  const auto* matrix = matrices + (static_cast<std::size_t>(index) << (2 * tile.log_in));
  const int first = static_cast<int>(blockIdx.x) * kC, count = 1 << tile.log_in;
  for (int i = static_cast<int>(threadIdx.x); i < count * kC; i += kThreads) {
    // Neighbouring threads read neighbouring words.
    const int k = kAcross ? i / kC : i % count, column = kAcross ? i % kC : i / count;
    const int at = tile.place(first + column, k);
    R x = W::load(row[at]);
    if (!kAcross && !kInverse) x = W::load(W::store(W::mul_lazy(x, twist[at], prime), prime));
    inputs[k * kPitch + column] = x;
  }
  __syncthreads();
  for (int item = static_cast<int>(threadIdx.x); item < count / kSide * (kC / kSide);
       item += kThreads) {
    const int out = item / (kC / kSide) * kSide, column = item % (kC / kSide) * kSide;
    typename W::Sum sums[kSide * kSide];
    for (int k = 0; k < count; ++k) {
      R m[kSide], x[kSide];
#pragma unroll
      for (int a = 0; a < kSide; ++a) {
        m[a] = W::load(matrix[(k << tile.log_in) + out + a]);
        x[a] = inputs[k * kPitch + column + a];
      }
#pragma unroll
      for (int s = 0; s < kSide * kSide; ++s) {
        W::add(sums[s], x[s % kSide], m[s / kSide], prime);
      }
      if ((k + 1) % W::kFold == 0) {
#pragma unroll
        for (int s = 0; s < kSide * kSide; ++s) sums[s] = W::sum_of(W::total(sums[s], prime));
      }
    }
#pragma unroll
    for (int s = 0; s < kSide * kSide; ++s) {
      const int at = tile.place(first + column + s % kSide, out + s / kSide);
      R y = W::total(sums[s], prime);
      if (!kAcross && kInverse) y = W::mul_lazy(y, twist[at], prime);
      row[at] = W::store(y, prime);
    }
  }
}

template <class W>
Constant upload(const Stream& stream, const std::vector<W>& v) {
  return Constant(stream, v.data(), v.size() * sizeof(W));
}

template <class W>
DenseMatrices<W> matrices(const Stream& stream, const Config& config,
                          std::span<const std::uint64_t> roots, int log_rows, int log_columns,
                          bool inverse, bool bytes) {
  using Stored = typename W::Stored;
  const std::size_t n = config.n, count = config.primes.size();
  const std::size_t rows = std::size_t{1} << log_rows, columns = std::size_t{1} << log_columns;
  std::vector<Stored> a(count * rows * rows), b(count * columns * columns);
  std::vector<Factor<typename W::R>> t(count * n);
  std::vector<std::uint64_t> power(2 * n);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t q = config.primes[i];
    const arith::Modulus mod(q);
    const std::uint64_t root = inverse ? mod.inverse(roots[i]) : roots[i];
    power[0] = 1;
    for (std::size_t e = 1; e < 2 * n; ++e) power[e] = mod.mul(power[e - 1], root);
    const auto odd = [&](std::size_t j) {
      return 2 * arith::bit_reverse(static_cast<std::uint32_t>(j), log_rows) + 1;
    };
    for (std::size_t j = 0; j < rows; ++j) {
      for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t at = inverse ? j * rows + r : r * rows + j;  // [in][out]
        a[i * rows * rows + at] = static_cast<Stored>(power[columns * odd(j) * r % (2 * n)]);
      }
      const std::uint64_t scale = inverse ? mod.inverse(n) : 1;
      for (std::size_t c = 0; c < columns; ++c) {
        t[i * n + j * columns + c] = make_factor<W>(mod.mul(power[odd(j) * c % (2 * n)], scale), q);
      }
    }
    for (std::size_t k = 0; k < columns; ++k) {
      const std::size_t e =
          2 * rows * arith::bit_reverse(static_cast<std::uint32_t>(k), log_columns);
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t at = inverse ? k * columns + c : c * columns + k;
        b[i * columns * columns + at] = static_cast<Stored>(power[e * c % (2 * n)]);
      }
    }
  }
  DenseMatrices<W> m{upload(stream, a), upload(stream, b), upload(stream, t), {}, {}};
  if (bytes) {
    const auto planes = [&](const std::vector<Stored>& words, std::size_t side) {
      std::vector<std::uint8_t> p(4 * words.size());
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t prime = i / (side * side), in = i / side % side, out = i % side;
        for (std::size_t byte = 0; byte < 4; ++byte) {
          p[((prime * 4 + byte) * side + out) * side + in] =
              static_cast<std::uint8_t>(words[i] >> (8 * byte));
        }
      }
      return upload(stream, p);
    };
    m.row_bytes = planes(a, rows);
    m.column_bytes = planes(b, columns);
  }
  return m;
}

}  // namespace

template <class W>
DenseTables<W>::DenseTables(const Stream& stream, const Config& config,
                            std::span<const std::uint64_t> roots, bool bytes)
    : log_rows(std::countr_zero(config.n) / 2),
      log_columns(std::countr_zero(config.n) - log_rows),
      forward(matrices<W>(stream, config, roots, log_rows, log_columns, false, bytes)),
      inverse(matrices<W>(stream, config, roots, log_rows, log_columns, true, bytes)) {}

template <class W, bool kInverse>
void dense_ntt(const Stream& stream, const DenseTables<W>& dense, const typename W::Prime* primes,
               typename W::Stored* data, const Limbs& limbs, unsigned limb_count, unsigned batch,
               int log_n) {
  using Stored = typename W::Stored;
  const DenseMatrices<W>& m = kInverse ? dense.inverse : dense.forward;
  const auto product = [&](auto* kernel, auto tile, const Constant& matrix) {
    const std::size_t bytes = (sizeof(typename W::R) * (kColumns<W> + 1)) << tile.log_in;
    allow_shared(kernel, bytes);
    const dim3 grid(static_cast<unsigned>((1 << (log_n - tile.log_in)) / kColumns<W>), batch,
                    limb_count);
    kernel<<<grid, kThreads, bytes, stream.get()>>>(data, tile, limbs, primes,
                                                    matrix.template as<Stored>(),
                                                    m.twist.template as<Factor<typename W::R>>());
    check_launch(stream, "dense ntt");
  };
  const DenseTile<true> across{log_n, dense.log_rows};
  const DenseTile<false> along{log_n, dense.log_columns};
  if constexpr (!kInverse) product(dense_kernel<W, true, false>, across, m.rows);
  product(dense_kernel<W, false, kInverse>, along, m.columns);
  if constexpr (kInverse) product(dense_kernel<W, true, true>, across, m.rows);
}

#define JALI_INSTANTIATE(W)                                                                \
  template struct DenseTables<W>;                                                          \
  template void dense_ntt<W, false>(const Stream&, const DenseTables<W>&, const W::Prime*, \
                                    W::Stored*, const Limbs&, unsigned, unsigned, int);    \
  template void dense_ntt<W, true>(const Stream&, const DenseTables<W>&, const W::Prime*,  \
                                   W::Stored*, const Limbs&, unsigned, unsigned, int);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
