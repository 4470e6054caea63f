// Ciphertexts whose masks are a seed, expanded on the GPU (backend/seeded.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/cuda/common/device.cuh"

namespace jali::backend::cuda {

/// Writes ciphertexts one after the other: of stream first + i of the seed the first mask_bytes,
/// then body i of body_bytes, of `bodies`. All are multiples of 4 bytes. If body_bytes is 0, bodies
/// may be null.
void expand_rows(const Stream& stream, void* out, std::span<const std::uint8_t, 32> seed,
                 std::uint64_t first, const void* bodies, std::size_t mask_bytes,
                 std::size_t body_bytes, std::size_t count);

}  // namespace jali::backend::cuda
