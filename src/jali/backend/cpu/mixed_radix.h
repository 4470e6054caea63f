// Integers from residues: mixed radix, in blocks of coefficients that the row kernels work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cpu/prime_tables.h"

namespace jali::backend::cpu {

/// Coefficients of a block: a multiple of every kernel's lanes, whose rows stay in the first-level
/// cache.
inline constexpr std::size_t kBlock = 256;

/// x = d_0 + d_1 q_0 + d_2 q_0 q_1 + .., d_i in [0, q_i), of residues x_i:
///   d_i = c_i x_i + sum_{j<i} f_ij d_j mod q_i,  c_i = (q_0 .. q_(i-1))^-1,  f_ij = -c_i q_0 ..
///   q_(j-1).
class MixedRadix {
 public:
  static constexpr std::size_t kLanes = 4;

  MixedRadix(std::vector<const PrimeTables*> primes, const RowKernels& kernels);

  /// Residues to digits in place: a row of kBlock words for each prime.
  void digits(std::byte* rows) const;
  /// The integers of digits: word w of integer k to out[w stride + k], `words` of them, which must
  /// hold the product of the primes. work: kLanes times as many words.
  void compose(std::uint64_t* out, std::size_t words, std::size_t stride, const std::byte* rows,
               std::uint64_t* work) const;

 private:
  std::vector<const PrimeTables*> primes_;
  const RowKernels& kernels_;
  std::vector<ShoupConstant> inverse_;               // c_i
  std::vector<std::vector<ShoupConstant>> factors_;  // f_ij
  /// Digits i .. end - 1 as one, d_i + d_(i+1) q_i + .., below their product, which is below 2^64.
  struct Group {
    std::size_t begin, end;
    std::uint64_t product;
    std::size_t words;  // that hold this and all groups above
  };
  template <class T, std::size_t fixed_words>
  void compose(std::uint64_t* out, std::size_t words, std::size_t stride, const T* digits,
               std::uint64_t* work) const;
  std::vector<Group> groups_;
};

/// Centred integers of residues as doubles, v / divisor as in centred_doubles. v may be what was
/// decrypted: the instructions and addresses depend on the primes alone. With M = floor(Q / 2), v +
/// M lies in [0, Q) and is what the mixed radix gives; v, in two's complement, fits the words of Q,
/// as Q is odd.
///
/// Subnormal numbers, which slow many processors down, do not occur: a v other than 0 is at least
/// 1, and divisors are far below 2^1022. Beyond 2^1024 doubles are infinite, which SSE and AVX take
/// like any other.
class CentredDoubles {
 public:
  CentredDoubles(const std::vector<const PrimeTables*>& primes, const RowKernels& kernels);

  /// out: kBlock of them. rows: of kBlock residues, one for each prime. scratch: scratch_bytes() of
  /// it.
  void operator()(double* out, std::span<const std::byte* const> rows, double divisor,
                  std::byte* scratch) const;
  std::size_t scratch_bytes() const {
    return (primes_.size() * static_cast<std::size_t>(kernels_.word_bytes) +
            (half_.size() + 1) * sizeof(std::uint64_t)) *
               kBlock +
           half_.size() * MixedRadix::kLanes * sizeof(std::uint64_t);
  }

 private:
  std::vector<const PrimeTables*> primes_;
  const RowKernels& kernels_;
  MixedRadix radix_;
  std::vector<std::uint64_t> half_;  // M, as many words as hold Q
  std::vector<std::uint64_t> shift_;  // M mod q_i
};

}  // namespace jali::backend::cpu
