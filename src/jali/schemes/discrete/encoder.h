// Encoding of vectors of integers as polynomials modulo T, and back. All arithmetic is of integers;
// transforms and divisions are the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/base/secret_vector.h"
#include "jali/ring/poly.h"
#include "jali/schemes/discrete/types.h"

namespace jali::discrete {

/// Slots: number i < N/2 is the polynomial's value at psi^(5^i), number N/2 + i that at
/// psi^(-5^i), for each prime of T and its root psi. So the numbers lie in two rows of N/2, which
/// X -> X^(5^k) rotates to the left by k, and X -> X^(2N - 1) exchanges.
///
/// Coefficients: number i is the coefficient of X^i.
class Encoder {
 public:
  Encoder(ParamsPtr params, std::shared_ptr<const ring::Ring> ring);

  /// values: `batch` vectors of equal length, 1 to N, one after the other; zeros fill them up.
  /// range: in which they lie, zeros included where vectors are filled up. It is public. Throws
  /// InvalidArgument if a number is outside, which is all that this tells. Numbers modulo T, for a
  /// range that wraps, may be any.
  Plaintext encode(std::span<const std::int64_t> values, std::size_t batch,
                   const Range& range) const;
  /// The same for numbers that are no secret: the range is that of the numbers. Throws
  /// RangeExceeded if T does not tell them apart, unless overflow is wrap.
  Plaintext encode_clear(std::span<const std::int64_t> values, std::size_t batch,
                         Overflow overflow = Overflow::refuse) const;

  /// The polynomial over the primes of a level whose w is the centred factor * m modulo T
  /// (discrete::Params): what is added to a ciphertext of this level and factor.
  ring::Poly scaled(const Plaintext& plaintext, int level, std::uint64_t factor) const;
  /// The polynomial over the primes of a level with the centred factor * m modulo T itself: by what
  /// a ciphertext of this level is multiplied. For slots only.
  ring::Poly lifted(const Plaintext& plaintext, int level, std::uint64_t factor) const;

  /// (batch, N) numbers of the range from the residues of the numbers modulo T, each in [0, T).
  /// Neither the time nor the memory that this takes tells anything of them. within: set to whether
  /// all of them are numbers of the range.
  SecretVector<std::int64_t> read(std::span<const std::uint64_t> residues, const Range& range,
                                  bool& within) const;
  /// (batch, N) residues modulo T of the numbers of a polynomial modulo the primes of T, in NTT
  /// form, in the order of the numbers. For slots only.
  SecretVector<std::uint64_t> residues(const ring::Poly& poly) const;

 private:
  std::vector<std::uint64_t> factors(std::uint64_t factor) const;  // modulo the primes of T

  ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  std::vector<std::uint32_t> index_;  // where in NTT form a number lies
};

}  // namespace jali::discrete
