// Base conversion: residues modulo the primes of a digit become residues modulo other primes. ModUp
// converts every digit of a polynomial to the primes of Q and P; ModDown and rescale convert the
// limbs that they drop to the primes that stay. All go through coefficient form, in three steps:
//   decompose     makes the y_i of every digit (an inverse transform),
//   convert_base  makes the inner product of the y_i for every target prime and, if a transform
//   takes two
//                 passes, runs the first of them,
//   the kernels of key_switch/ and mod_down/ finish the transform and do their own work on the tile
//   that they hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cuda/base_conversion/digit_table.cuh"
#include "jali/backend/cuda/base_conversion/tensor_cores.cuh"
#include "jali/backend/cuda/common/context.cuh"
#include "jali/backend/cuda/common/source.cuh"
#include "jali/backend/cuda/ntt/tile.cuh"

namespace jali::backend::cuda {

/// Constants of the conversion of consecutive digits (primes `from`, products D_j) to primes `to`
/// and, for a single digit, of ModDown: the division by D after a multiplication by A.
template <class W>
struct BaseConversionPlan {
  using F = Factor<typename W::R>;
  DigitTable table{};
  unsigned from_count = 0, to_count = 0, largest_digit = 0;
  Limbs from{};  // primes of the digits' limbs
  Constant inverse_hat;  // F[from]: N^-1 A (D/q_i)^-1 mod q_i
  Constant reciprocal;  // double[from]: 1 / q_i
  Constant half;  // Stored[from]: (q_i - 1) / 2
  Constant matrix;  // Stored[digit][to][count + 1]: D/q_i mod p, last -D mod p
  Constant keep;  // F[to]: A / D mod p, of the last digit
  Constant divide;  // F[to]: -1 / D mod p, of the last digit
  TensorPlan tensor;  // usable() if tensor cores do the conversion
  int log_n = 0;
  bool small_digits = false;  // at most kDirectLimbs limbs, not converted by tensor cores
  /// Whether the kernel that finishes the transform computes the conversion too: digits are small
  /// and a transform takes one pass.
  bool at_use(unsigned rows) const {
    return small_digits && one_tile<W>(log_n, table.digits * to_count * rows);
  }
  BaseConversionPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> from,
                     std::span<const std::uint32_t> digit_limbs, std::span<const PrimeIndex> to,
                     std::span<const PrimeIndex> multiply);
};

/// Rows that digits are converted to: the prime of each, and which limb of x has that prime (kSkip
/// for none). A digit is not converted to its own primes: there its residues are those of x.
struct Targets {
  Limbs prime, position;
  unsigned count = 0;
};
__device__ inline bool is_own(const Targets& t, unsigned target, const DigitTable& d,
                              unsigned digit) {
  const unsigned at = t.position.prime[target];
  return at != kSkip && at - d.begin[digit] < d.count[digit];
}

__device__ inline double exact_double(std::uint32_t x) {
  return __hiloint2double(0x43300000, static_cast<int>(x)) - 0x1p52;  // no conversion pipe
}
__device__ inline double exact_double(std::uint64_t x) { return __ull2double_rn(x); }
__device__ inline double exact_double(double x) { return x; }
/// floor of 0 <= s < 2^51, by rounding down where the units end.
__device__ inline std::uint64_t floor_bits(double s) {
  return static_cast<std::uint64_t>(__double_as_longlong(__dadd_rd(s, 0x1p52))) &
         0x000fffffffffffffull;
}

/// Conversions of digits of up to kDirectLimbs limbs, computed where they are used.
template <class W>
struct DirectConversion {
  const typename W::Stored* y = nullptr;  // null: conversions are in memory
  const double* reciprocal = nullptr;
  const typename W::Stored* matrix = nullptr;
  const typename W::Stored* half = nullptr;

  /// Calls f(e, the digit's conversion at k(e)) for e < kCount, from a row of y. The values are
  /// lazy.
  template <int kCount, int kLimbs, class K, class F>
  __device__ __forceinline__ void each_of(const DigitTable& table, unsigned digit, unsigned target,
                                          unsigned rows, unsigned row, int log_n,
                                          const typename W::Prime& prime, K&& k, F&& f) const {
    const auto* m = matrix + table.matrix[digit] + target * (kLimbs + 1);
    const auto* from = y + ((static_cast<std::size_t>(table.begin[digit]) * rows + row) << log_n);
    const std::size_t limb = static_cast<std::size_t>(rows) << log_n;
    typename W::R factor[kLimbs + 1];
    double inverse[kLimbs];
#pragma unroll
    for (int i = 0; i <= kLimbs; ++i) factor[i] = W::load(m[i]);
#pragma unroll
    for (int i = 0; i < kLimbs; ++i) inverse[i] = reciprocal[table.begin[digit] + i];
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      const auto* at = from + k(e);
      typename W::Sum sum;
      double s = 0.5;
#pragma unroll
      for (int i = 0; i < kLimbs; ++i) {
        const auto x = W::load(at[i * limb]);
        s = __fma_rn(exact_double(x), inverse[i], s);
        W::add(sum, x, factor[i], prime);
        if ((i + 1) % W::kFold == 0) sum = W::sum_of(W::total(sum, prime));
      }
      W::add(sum, W::load(static_cast<typename W::Stored>(floor_bits(s))), factor[kLimbs], prime);
      f(e, W::total_lazy(sum, prime));
    }
  }
  /// The same for a digit of one limb below 2^32. There v is exactly y > (q - 1) / 2: y / q is at
  /// least 1 / (2 q) off one half, and doubles within 2^-52. minus_q: -q mod p.
  template <int kCount, class K, class F>
  __device__ __forceinline__ void each_of_one(unsigned limb, typename W::Stored minus_q,
                                              unsigned rows, unsigned row, int log_n,
                                              const typename W::Prime& prime, K&& k, F&& f) const {
    static_assert(sizeof(typename W::Stored) == 4);
    const auto most = half[limb];
    const auto* from = y + ((static_cast<std::size_t>(limb) * rows + row) << log_n);
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      const auto x = from[k(e)];
      f(e, W::reduce(x + (x > most ? minus_q : 0), prime));
    }
  }
  template <int kCount, class K, class F>
  __device__ __forceinline__ void each(const DigitTable& table, unsigned digit, unsigned target,
                                       unsigned rows, unsigned row, int log_n,
                                       const typename W::Prime& prime, K&& k, F&& f) const {
    switch (table.count[digit]) {
      case 1:
        if constexpr (sizeof(typename W::Stored) == 4) {
          const auto minus_q = matrix[table.matrix[digit] + 2 * target + 1];
          return each_of_one<kCount>(table.begin[digit], minus_q, rows, row, log_n, prime, k, f);
        } else {
          return each_of<kCount, 1>(table, digit, target, rows, row, log_n, prime, k, f);
        }
      case 2: return each_of<kCount, 2>(table, digit, target, rows, row, log_n, prime, k, f);
      case 3: return each_of<kCount, 3>(table, digit, target, rows, row, log_n, prime, k, f);
      case 4: return each_of<kCount, 4>(table, digit, target, rows, row, log_n, prime, k, f);
      default: break;
    }
  }
};

/// y: (from, rows, N): [x (D/q_i)^-1]_{q_i} in coefficient form, of the limbs of x
/// (NTT form).
template <class W>
void decompose(const Context<W>&, const BaseConversionPlan<W>&, const Source& x, unsigned rows,
               void* y);
template <class W>
DirectConversion<W> direct_conversion(const BaseConversionPlan<W>& plan, const void* y) {
  using S = typename W::Stored;
  return {static_cast<const S*>(y), plan.reciprocal.template as<double>(),
          plan.matrix.template as<S>(), plan.half.template as<S>()};
}
/// ext: (digit, target, rows, N), in coefficient form or, if a transform has two passes, after the
/// first of them, there in any range that the second may start from. Own rows are left alone;
/// nothing is done for a plan whose conversions are computed at use (at_use). stay: the results
/// should stay in L2, where the next kernel reads them for the last time. begin: if false and
/// tensor cores do the conversion, the result is in coefficient form in any case.
template <class W>
void convert_base(const Context<W>&, const BaseConversionPlan<W>&, const Targets&, unsigned rows,
                  void* ext, const void* y, bool stay, bool begin = true);

}  // namespace jali::backend::cuda
