// Changes of basis: lifting digits (mod_up) and dividing by primes (scale_down).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cuda/elementwise.cuh"

namespace jali::backend::cuda {

constexpr unsigned kMaxDigits = 128;

/// Where the digits of a block lie in it, and their rows of the matrix. By value.
struct DigitTable {
  std::uint16_t begin[kMaxDigits], count[kMaxDigits];
  std::uint32_t matrix[kMaxDigits];
  unsigned digits;
};

/// Constants of the centred lifts of consecutive digits (primes `from`, products D_j) to primes `to`,
/// and, for a single digit, of the division by D after a multiplication by A.
template <class W>
struct ConversionPlan {
  using F = Factor<typename W::R>;
  DigitTable table{};
  unsigned from_count = 0, to_count = 0, largest_digit = 0;
  Constant inverse_hat;  // F[from]: A (D/q_i)^-1 mod q_i
  Constant reciprocal;   // double[from]: 1 / q_i
  Constant from_limbs;   // uint16_t[from]
  Constant matrix;       // Stored[digit][to][count + 1]: D/q_i mod p, last -D mod p
  Constant keep;         // F[to]: A / D mod p, of the last digit
  Constant divide;       // F[to]: -1 / D mod p, of the last digit
  ConversionPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> from,
                 std::span<const std::uint32_t> digit_limbs, std::span<const PrimeIndex> to,
                 std::span<const PrimeIndex> multiply);
};

/// x: (from, batch, N) in coefficient form -> y in place; v: (digit, batch, N) as words.
template <class W>
void lift_prepare(const Stream&, const Tables<W>&, const ConversionPlan<W>&, unsigned batch,
                  int log_n, void* x, void* v);
/// out: (digit, to, batch, N), coefficient form; where position[t] lies in the digit, row t is copied
/// from that limb of x (NTT form) instead. position[t] is kSkip for a prime that x lacks.
template <class W>
void lift_convert(const Stream&, const Tables<W>&, const ConversionPlan<W>&, const Shape& to,
                  const Limbs& limbs, const Limbs& position, void* out, const void* y,
                  const void* v, const void* x);
/// out_t = x_{source[t]} keep_t + out_t divide_t (+ addend_t), source kSkip: no x.
template <class W>
void divide_combine(const Stream&, const Tables<W>&, const ConversionPlan<W>&, const Shape&,
                    const Limbs& limbs, const Limbs& source, void* out, const void* x,
                    const void* addend);

}  // namespace jali::backend::cuda
