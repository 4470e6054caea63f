// The product of a public polynomial with a binary secret one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/base/secret_vector.h"

namespace jali::backend::cpu {

/// Multiplies polynomials by one binary secret S, in Z_{2^64}[X] / (X^N + 1).
///
/// It sums the N rotations of A, each under a mask of all ones where the secret has its bit: N^2
/// word operations, whose addresses and branches depend on no bit.
class BinaryProduct {
 public:
  /// bits: N of them, 0 or 1, N a power of two of at least 64.
  explicit BinaryProduct(std::span<const std::uint8_t> bits);

  /// acc += a S. Both have N words. May be called from several threads.
  void add(std::span<std::uint64_t> acc, std::span<const std::uint64_t> a) const;

 private:
  SecretVector<std::uint64_t> masks_;  // 0 - bit
};

}  // namespace jali::backend::cpu
