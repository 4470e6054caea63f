// Integers from residues: mixed radix, in blocks of coefficients that the row kernels work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/arith/wide.h"
#include "jali/backend/cpu/prime_tables.h"

namespace jali::backend::cpu {

/// Coefficients of a block: a multiple of every kernel's lanes, whose rows stay in the first-level cache.
inline constexpr std::size_t kBlock = 256;

/// x = d_0 + d_1 q_0 + d_2 q_0 q_1 + .., d_i in [0, q_i), of residues x_i:
///   d_i = c_i x_i + sum_{j<i} f_ij d_j mod q_i,  c_i = (q_0 .. q_(i-1))^-1,  f_ij = -c_i q_0 .. q_(j-1).
class MixedRadix {
 public:
  MixedRadix(std::vector<const PrimeTables*> primes, const RowKernels& kernels);

  /// Residues to digits in place: a row of kBlock words for each prime.
  void digits(std::byte* rows) const;
  /// The integers of digits: word w of integer k to out[w stride + k], `words` of them, which must hold the
  /// product of the primes.
  void compose(std::uint64_t* out, std::size_t words, std::size_t stride,
               const std::byte* rows) const;

 private:
  std::vector<const PrimeTables*> primes_;
  const RowKernels& kernels_;
  std::vector<ShoupConstant> inverse_;               // c_i
  std::vector<std::vector<ShoupConstant>> factors_;  // f_ij
  std::vector<std::size_t> words_;                   // that hold q_i q_(i+1) ..
};

/// Centred integers that are far smaller than the product of all primes, as decoded coefficients are. With D
/// the product of the first primes, as many as stay below 2^126, and M = floor(D / 2), v is in [-M, D - M) if
/// and only if the digits of v + M end with those primes: the other residues tell.
class SmallIntegers {
 public:
  SmallIntegers(const std::vector<const PrimeTables*>& primes, const RowKernels& kernels);

  /// out[k] = v / divisor as in centred_doubles. rows: of kBlock residues, one for each prime. Returns false,
  /// and leaves out undefined, if some v is not in the range. scratch: scratch_bytes() of it.
  bool centred(double* out, std::span<const std::byte* const> rows, double divisor,
               std::byte* scratch) const;
  std::size_t scratch_bytes() const {
    return (head_ + 1) * kBlock * static_cast<std::size_t>(kernels_.word_bytes);
  }

 private:
  std::vector<const PrimeTables*> primes_;
  const RowKernels& kernels_;
  std::size_t head_;  // of the primes of D
  arith::uint128 product_ = 1, half_ = 0;  // D, M
  MixedRadix radix_;
  std::vector<std::uint64_t> shift_;                 // M mod q_i
  std::vector<std::vector<ShoupConstant>> factors_;  // beyond the head: -q_0 .. q_(j-1) mod q_i
};

}  // namespace jali::backend::cpu
