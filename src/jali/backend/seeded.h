// Ciphertexts whose masks are a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/tfhe_config.h"

namespace jali::backend {

/// The ciphertexts of a key, or of a vector. The mask of ciphertext r is the first words of stream
/// r of the seed (random/prng.h), with the least significant byte first. Mask polynomial c of a
/// GLWE ciphertext is words c N to (c + 1) N - 1.
struct SeededKey {
  std::span<const std::uint8_t, 32> seed;
  const void* bodies = nullptr;  // of all its ciphertexts, in host memory
};

/// What these ciphertexts are.
struct KeyShape {
  std::size_t rows = 0, mask_bytes = 0, body_bytes = 0;
  std::size_t row_bytes() const { return mask_bytes + body_bytes; }
};
/// LWE ciphertexts.
KeyShape lwe_shape(Torus torus, LweDimension dimension, std::size_t count);
/// GLWE ciphertexts: the rows of the GGSW ciphertexts of all steps.
KeyShape rotation_key_shape(const TfheConfig& config);
/// Small LWE ciphertexts.
KeyShape switch_key_shape(const TfheConfig& config);
/// GLWE ciphertexts: one for each word of a mask of dimension `from` and each level of the
/// rotation's gadget.
KeyShape packing_key_shape(const TfheConfig& config, LweDimension from);

/// Writes ciphertexts one after the other: of stream first + i the first mask_bytes, then body i of
/// body_bytes. All in host memory.
void expand_rows(void* out, std::span<const std::uint8_t, 32> seed, std::uint64_t first,
                 const void* bodies, std::size_t mask_bytes, std::size_t body_bytes,
                 std::size_t count);

}  // namespace jali::backend
