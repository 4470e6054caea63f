// Sparse ternary secrets from a seed: the same stream and the same choice as random/ternary.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/cuda/common/device.cuh"

namespace jali::backend::cuda {

/// Bits of a word that are sorted by.
constexpr std::uint64_t kSparseKey = ~std::uint64_t{3};

/// Bytes of scratch memory, secret, for N = 2^log_n.
std::size_t sparse_scratch(int log_n);

/// values: random::sample_sparse_ternary from `nonce`, if `draw` is the first draw whose keys
/// differ: draw 0 unless something happened that does once in 2^31 draws. scratch begins with a
/// 32-bit word that is 0 if they do.
void sample_sparse(const Stream& stream, int log_n, unsigned weight,
                   std::span<const std::uint8_t, 32> seed, std::uint64_t nonce, unsigned draw,
                   void* scratch, std::int8_t* values, std::uint64_t key_bits = kSparseKey);

}  // namespace jali::backend::cuda
