#include "jali/lwe/secret/product.h"

#include <bit>

#include "jali/base/cpu_features.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/masked_sums.h"

namespace jali::lwe {

namespace {

/// The fastest kernel that this machine can run.
template <class Word>
MaskedSums<Word>* best() {
#if defined(__x86_64__)
  if (cpu_features().avx512) return masked_sums_avx512;
  if (cpu_features().avx2) return masked_sums_avx2;
#endif
  return masked_sums_portable;
}

}  // namespace

template <class Word>
BinaryProduct<Word>::BinaryProduct(std::span<const std::uint8_t> bits) : masks_(bits.size()) {
  require<InvalidArgument>(std::has_single_bit(bits.size()) && bits.size() >= 128,
                           "a polynomial has a power of two of coefficients, at least 128");
  for (std::size_t i = 0; i < bits.size(); ++i) {
    masks_[i] = static_cast<Word>(0) - static_cast<Word>(bits[i]);
  }
}

// Coefficient t of A S is the sum of s_i A_{t-i} over i <= t, minus that of s_i A_{N+t-i} over i > t.
template <class Word>
void BinaryProduct<Word>::add(std::span<Word> acc, std::span<const Word> a,
                              std::span<Word> scratch) const {
  const std::size_t n = masks_.size();
  require<InternalError>(acc.size() == n && a.size() == n && scratch.size() >= 2 * n,
                         "BinaryProduct: another number of words");
  for (std::size_t i = 0; i < n; ++i) {
    scratch[i] = static_cast<Word>(0) - a[i];
    scratch[n + i] = a[i];
  }
  best<Word>()(acc.data(), scratch.data(), masks_.data(), n);
}

template class BinaryProduct<std::uint32_t>;
template class BinaryProduct<std::uint64_t>;

}  // namespace jali::lwe
