// Sums of rotations of a polynomial, each under a mask.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::lwe {

/// out[t] += sum_i masks[i] & turned[n + t - i] for t < n, modulo the word. turned has 2 n words; n is a power of two of at
/// least 128. All of these functions give the same words.
template <class Word>
using MaskedSums = void(Word* out, const Word* turned, const Word* masks, std::size_t n);
MaskedSums<std::uint32_t> masked_sums_portable, masked_sums_avx2, masked_sums_avx512;
MaskedSums<std::uint64_t> masked_sums_portable, masked_sums_avx2, masked_sums_avx512;

}  // namespace jali::lwe
