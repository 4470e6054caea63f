#include "jali/backend/cpu/secret/binary_product.h"

#include <bit>
#include <vector>

#include "jali/backend/cpu/secret/masked_sums.h"
#include "jali/base/cpu_features.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {

namespace {

/// The fastest kernel that this machine can run.
MaskedSums* best() {
#if defined(__x86_64__)
  if (cpu_features().avx512) return masked_sums_avx512;
  if (cpu_features().avx2) return masked_sums_avx2;
#endif
  return masked_sums_portable;
}

}  // namespace

BinaryProduct::BinaryProduct(std::span<const std::uint8_t> bits) : masks_(bits.size()) {
  require<InvalidArgument>(std::has_single_bit(bits.size()) && bits.size() >= 64,
                           "a polynomial has a power of two of coefficients, at least 64");
  for (std::size_t i = 0; i < bits.size(); ++i) masks_[i] = 0 - std::uint64_t{bits[i]};
}

// Coefficient t of A S is the sum of s_i A_{t-i} over i <= t, minus that of s_i A_{N+t-i} over i >
// t.
void BinaryProduct::add(std::span<std::uint64_t> acc, std::span<const std::uint64_t> a) const {
  const std::size_t n = masks_.size();
  require<InternalError>(acc.size() == n && a.size() == n,
                         "BinaryProduct: another number of words");
  std::vector<std::uint64_t> turned(2 * n);
  for (std::size_t i = 0; i < n; ++i) {
    turned[i] = 0 - a[i];
    turned[n + i] = a[i];
  }
  best()(acc.data(), turned.data(), masks_.data(), n);
}

}  // namespace jali::backend::cpu
