// CRT and its inverse as in GIF-FHE, section V: CRT-MUL (inner product with powers of two) and
// ICRT-C (sum of multiples of Q/q_i) here, CRT-MOD (Horner) and ICRT-G (Garner's mixed radix) in
// variants/.
#pragma once

#include <span>
#include <vector>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/ring_ops.h"

namespace jali::backend::cuda {

/// Throws Unsupported for integers of more words than kernels hold.
void check_crt_words(std::size_t words);
std::vector<std::uint64_t> primes_of(const Config& config, std::span<const PrimeIndex> primes);
/// 32-bit words of a residue, 1 or 2.
int pieces_of(const std::vector<std::uint64_t>& primes);

/// Constants of CRT for a list of primes.
struct CrtPlan {
  int pieces;  // 32-bit words of a power
  Constant powers;  // uint32[limb / 4][2 words][pieces][limb % 4]: 2^(32 j) mod q
  CrtPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> primes,
          std::size_t words);
};

/// Constants of the inverse by one method; automatic is product_sum. The integer is sum_r y_r row_r
/// modulo 2^(128 chunks), y_r < 2^32.
template <class W>
struct IcrtPlan {
  int pieces;  // 32-bit words of a residue
  unsigned chunks;  // of four 32-bit words: they hold 2Q
  unsigned rows;  // limbs * pieces, and -Q for product_sum
  /// product_sum: F[limb], (Q/q_i)^-1; garner: F[limb][limb], entry (j, i): q_j^-1 mod q_i.
  Constant factors;
  Constant reciprocals;  // double[limb]: 1 / q
  /// uint32[chunk][row][4]: Q/q_i or q_0 .. q_{i-1}; times 2^32 for a second piece.
  Constant row;
  Constant modulus;  // uint64[2 chunks]: Q
  IcrtPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> primes,
           std::size_t words, IcrtMethod method);
};

/// integers: (word, batch, N) on the device.
template <class W>
void crt(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&, const Limbs&, void* out,
         const std::uint64_t* integers, unsigned words, CrtMethod method);
template <class W>
void icrt(const Stream&, const Tables<W>&, const IcrtPlan<W>&, const Shape&, const Limbs&,
          std::uint64_t* integers, unsigned words, const void* x, IcrtMethod method);

}  // namespace jali::backend::cuda
