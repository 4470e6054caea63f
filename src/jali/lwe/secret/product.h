// The product of a public polynomial with a binary secret one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/base/secret_vector.h"

namespace jali::lwe {

/// Multiplies polynomials by one binary secret S, in Z_{2^w}[X] / (X^N + 1), w the bits of Word: uint32_t or uint64_t.
///
/// It sums the N rotations of A, each under a mask of all ones where the secret has its bit: N^2 word operations, whose
/// addresses and branches depend on no bit.
template <class Word>
class BinaryProduct {
 public:
  /// bits: N of them, 0 or 1, N a power of two of at least 64.
  explicit BinaryProduct(std::span<const std::uint8_t> bits);

  /// acc += A S. Both have N words. May be called from several threads with scratch of their own, of scratch_words().
  void add(std::span<Word> acc, std::span<const Word> a, std::span<Word> scratch) const;
  std::size_t scratch_words() const { return 2 * masks_.size(); }

 private:
  SecretVector<Word> masks_;  // 0 - bit
};

extern template class BinaryProduct<std::uint32_t>;
extern template class BinaryProduct<std::uint64_t>;

}  // namespace jali::lwe
