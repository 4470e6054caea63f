// Sums of rotations of a polynomial, each under a mask.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::backend::cpu {

/// out[t] += sum_i masks[i] & turned[n + t - i] for t < n, modulo 2^64. turned has 2 n words; n is
/// a power of two of at least 64. All of these functions give the same words.
using MaskedSums = void(std::uint64_t* out, const std::uint64_t* turned, const std::uint64_t* masks,
                        std::size_t n);
MaskedSums masked_sums_portable, masked_sums_avx2, masked_sums_avx512;

}  // namespace jali::backend::cpu
