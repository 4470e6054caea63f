// Weights of the slots for sums of products before their division by P: double hoisting (Bossuat et
// al. 2021) by hand.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "jali/schemes/ckks/evaluator.h"

namespace jali::ckks {

/// A plaintext over the primes of a level and P.
struct Diagonal {
  ParamsPtr params;
  ring::Poly poly;
  double scale = 1;
  double message =
      1;  // root mean square of its entries over all slots: those past the vector are zero
  double peak = 0;  // the largest modulus of an entry
};

/// values: `batch` rows one after the other, as Encoder::encode takes them; scale >= 1. Throws
/// InvalidArgument.
Diagonal encode_diagonal(const Evaluator& evaluator, std::span<const std::complex<double>> values,
                         std::size_t batch, int level, double scale);
/// sum_k a[k] * diagonals[k]: as many of both, at least one, the diagonals of one scale. Throws
/// InvalidArgument, ParamsMismatch or ScaleMismatch.
Extended multiply_accumulate(const Evaluator& evaluator, std::span<const Extended* const> a,
                             std::span<const Diagonal* const> diagonals);

}  // namespace jali::ckks
