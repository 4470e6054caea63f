// Blocks of residues, as every table of operations takes and writes them.
//
// Layout. A View is a block of residues (limb, batch, coefficient), rows of N contiguous words;
// row (i, b) starts at word (i * batch + b) * N and holds residues modulo prime primes[i].
// Form. "NTT form": row value at index k is the polynomial evaluated at psi^(2*brv(k)+1), where
// psi = RingOps::root(prime) and brv reverses log2(N) bits. "Coefficient form": index k is the
// coefficient of X^k in Z_q[X]/(X^N + 1).
#pragma once

#include <cstddef>
#include <span>

#include "jali/arith/word.h"

namespace jali::backend {

struct ConstView {
  const void* data = nullptr;
  std::span<const PrimeIndex> primes;  // one per limb, ascending
  std::size_t batch = 1;
};

struct View {
  void* data = nullptr;
  std::span<const PrimeIndex> primes;
  std::size_t batch = 1;
  operator ConstView() const { return {data, primes, batch}; }
};

}  // namespace jali::backend
