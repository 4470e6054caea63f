// Between integers and residues.
#pragma once

#include "jali/backend/cuda/elementwise.cuh"

namespace jali::backend::cuda {

/// c: (batch, N) on the device.
template <class W>
void from_int64(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out,
                const std::int64_t* c);
template <class W>
void from_double(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out,
                 const double* c);

/// Constants of CRT and its inverse for a list of primes.
struct CrtPlan {
  Constant powers;     // uint64[limb][words]: 2^(64 j) mod q
  Constant inverses;   // uint64[limb][limb]: entry (i, j): q_j^-1 mod q_i, j < i
  Constant hats;       // uint64[limb][words]: Q / q_i
  Constant hat_inverses;  // uint64[limb]: (Q / q_i)^-1 mod q_i
  Constant modulus;    // uint64[words]: Q
  Constant values;     // uint64[limb]: q_i
  CrtPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> primes,
          std::size_t words);
};
template <class W>
void crt(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&, const Limbs&, void* out,
         const std::uint64_t* integers, unsigned words, CrtMethod method);
template <class W>
void icrt(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&, const Limbs&,
          std::uint64_t* integers, unsigned words, const void* x, IcrtMethod method);

}  // namespace jali::backend::cuda
