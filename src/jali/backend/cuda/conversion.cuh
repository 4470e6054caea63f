// Changes of basis: lifting digits to other primes and dividing by primes. Both go through coefficient
// form: decompose makes the y_i of every digit, lift their inner products for every target and, where a
// transform takes two passes, the first pass. What finishes the transform (key_switch.cuh,
// division.cuh) does its own work on the tile that it holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cuda/engine.cuh"
#include "jali/backend/cuda/lift_tensor.cuh"

namespace jali::backend::cuda {

/// Constants of the centred lifts of consecutive digits (primes `from`, products D_j) to primes `to`,
/// and, for a single digit, of the division by D after a multiplication by A.
template <class W>
struct ConversionPlan {
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
  TensorPlan tensor;  // usable where the lift goes through tensor cores
  int log_n = 0;
  bool small_digits = false;  // up to kDirectLimbs, lifted by no tensor cores
  /// Whether what finishes the transform computes the lift: small digits, transforms of one pass.
  bool at_use(unsigned rows) const {
    return small_digits && one_tile<W>(log_n, table.digits * to_count * rows);
  }
  ConversionPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> from,
                 std::span<const std::uint32_t> digit_limbs, std::span<const PrimeIndex> to,
                 std::span<const PrimeIndex> multiply);
};

/// Rows to lift to: a prime each and the limb of x that it is, kSkip for none. A digit is not lifted to
/// its own limbs.
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

/// Lifts of small digits, computed where they are used. Digits of up to kDirectLimbs limbs.
constexpr unsigned kDirectLimbs = 4;
template <class W>
struct DirectLift {
  const typename W::Stored* y = nullptr;  // null: lifts are in memory
  const double* reciprocal = nullptr;
  const typename W::Stored* matrix = nullptr;
  const typename W::Stored* half = nullptr;

  /// f(e, lift at k(e)) for e < kCount, of a row of y. Lazy values.
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
  /// The same of a digit of one limb below 2^32, where v is y > (q - 1) / 2, exactly: y / q is at least 1 / (2 q) off one
  /// half, and doubles within 2^-52. minus_q: -q mod p.
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
void decompose(const Engine<W>&, const ConversionPlan<W>&, const Source& x, unsigned rows, void* y);
template <class W>
DirectLift<W> direct_lift(const ConversionPlan<W>& plan, const void* y) {
  using S = typename W::Stored;
  return {static_cast<const S*>(y), plan.reciprocal.template as<double>(),
          plan.matrix.template as<S>(), plan.half.template as<S>()};
}
/// ext: (digit, target, rows, N), coefficient form or, where a transform has two passes, after the
/// first of them, there in any range that the second may start from. Own rows are left alone; nothing
/// is done for a plan whose lifts are had at use. stay: in L2, for who reads them next, and for the last time.
/// begin: false for coefficient form in any case, where the plan is one for tensor cores.
template <class W>
void lift(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows, void* ext,
          const void* y, bool stay, bool begin = true);

}  // namespace jali::backend::cuda
