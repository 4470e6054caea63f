// Changes of basis: lifting digits (mod_up) and dividing by primes (scale_down).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cuda/elementwise.cuh"

namespace jali::backend::cuda {

/// Constants of the centred lift of a digit (primes `from`, product D) to primes `to`, and of the
/// division by D after a multiplication by A.
template <class W>
struct ConversionPlan {
  using F = Factor<typename W::R>;
  std::vector<PrimeIndex> from, to;
  Constant inverse_hat;  // F[from]: A (D/q_i)^-1 mod q_i
  Constant reciprocal;   // double[from]: 1 / q_i
  Constant from_limbs;   // uint16_t[from]
  Constant matrix;       // Stored[to][from + 1]: D/q_i mod p, last -D mod p
  Constant keep;         // F[to]: A / D mod p
  Constant divide;       // F[to]: -1 / D mod p
  ConversionPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> from,
                 std::span<const PrimeIndex> to, std::span<const PrimeIndex> multiply);
};

/// digit: (from, batch, N) in coefficient form -> y in place, v: (batch, N) as words.
template <class W>
void lift_prepare(const Stream&, const Tables<W>&, const ConversionPlan<W>&, unsigned batch,
                  int log_n, void* digit, void* v);
/// out: (to, batch, N), coefficient form; where own[t] is not kSkip, row t is copied from limb own[t] of
/// x instead.
template <class W>
void lift_convert(const Stream&, const Tables<W>&, const ConversionPlan<W>&, const Shape&,
                  const Limbs&, const Limbs& own, void* out, const void* y, const void* v,
                  const void* x);
/// out_t = x_{source[t]} keep_t + out_t divide_t (+ addend_t), source kSkip: no x.
template <class W>
void divide_combine(const Stream&, const Tables<W>&, const ConversionPlan<W>&, const Shape&,
                    const Limbs& limbs, const Limbs& source, void* out, const void* x,
                    const void* addend);

}  // namespace jali::backend::cuda
