// A function with every kind of operation, for tests of programs, batches and engines.
#pragma once

#include "world.h"

namespace jali::discrete {

/// It needs keys for rotations by 1, conjugation and products. plain: in the memory of the
/// evaluator.
inline Ciphertext compute(const Evaluator& e, const Ciphertext& a, const Ciphertext& b,
                          const Plaintext& plain) {
  const Ciphertext product = e.multiply(e.rotate(a, 1), b, Overflow::wrap);
  const Ciphertext weighted = e.multiply_plain(e.swap_rows(a), plain, Overflow::wrap);
  const Ciphertext sum = e.add(product, weighted, Overflow::wrap);
  return e.add_integer(e.sub(e.multiply_integer(sum, 3), b), 7);
}

/// The same of numbers. They have N = params.n() in each vector.
inline Numbers expected(const Numbers& a, const Numbers& b, const Numbers& plain,
                        const PlainModulus& t) {
  const Numbers turned = rotated(a, 1), other = swapped(a);
  Numbers out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    out[i] = residue(3 * (Wide{turned[i]} * b[i] + Wide{other[i]} * plain[i % kN]) - b[i] + 7, t);
  }
  return out;
}

}  // namespace jali::discrete
