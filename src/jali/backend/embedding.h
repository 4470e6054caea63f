// The canonical embedding in double precision: between coefficients and slots.
//
// With zeta = exp(i pi / N), slot j of a real polynomial m of degree below N is m(zeta^(5^j)). As
// zeta^(5^j N/2) = i for every j, m folds to w_k = m_k + i m_(k+N/2), a complex polynomial modulo
// X^(N/2) - i, and the slots are its values at the roots of that modulus. Splitting
//   X^len - r = (X^(len/2) - sqrt r)(X^(len/2) + sqrt r)
// down to degree one is one butterfly a split, as in the NTT. The angle of r starts at pi/2 and is
// halved (plus pi) on the way, whatever N is: one table of twiddles serves every number of slots.
//
// Every sum, difference and product of doubles is rounded on its own, so that engines agree bit for
// bit.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/base/secret_vector.h"

namespace jali::backend {

using Complex = std::complex<double>;

struct Embedding {
  explicit Embedding(std::size_t slots);  // a power of two: tables for that many and for fewer

  // twiddle[m + i]: sqrt of the root of node i among the m nodes of its depth.
  std::vector<Complex> twiddle;
  // leaf[log_slots][j]: position of slot j after the last split.
  std::vector<std::vector<std::uint32_t>> leaf;

  /// Coefficients w -> values in leaf order.
  void forward(Complex* x, std::size_t slots) const;
  /// The inverse, without the factor 1/slots.
  void backward(Complex* x, std::size_t slots) const;
};

/// round(factor w) of the inverse embedding of `batch` vectors in values, one after the other,
/// zeros behind them; coefficients (batch, n), zero between those of fewer slots than n/2.
SecretVector<double> embed(const Embedding& embedding, std::span<const Complex> values,
                           std::size_t batch, std::size_t n, int log_slots, double factor);
/// The slots of coefficients (batch, n).
void unembed(const Embedding& embedding, std::span<const double> coefficients, std::size_t batch,
             std::size_t n, int log_slots, std::span<Complex> slots);

/// Q as 64-bit words, little end first, as many as hold it.
std::vector<std::uint64_t> product_words(std::span<const std::uint64_t> primes);
/// v / divisor as doubles, v the centred value in [-Q/2, Q/2) of integers in [0, Q) laid out (word,
/// count). Exact to 2^-52 relative.
SecretVector<double> centred_doubles(std::span<const std::uint64_t> integers, std::size_t count,
                                     std::span<const std::uint64_t> q_words, double divisor);

}  // namespace jali::backend
