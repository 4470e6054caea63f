// External products and blind rotations of the oracle of TFHE, which computes every operation
// exactly, over integers modulo 2^w, by its formula. Keys stay in standard form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/tfhe_config.h"

namespace jali::backend::ref {

/// A GLWE ciphertext, k + 1 rows of N words.
template <class W>
using Glwe = std::vector<W>;

/// GGSW x in, by schoolbook products.
template <class W>
Glwe<W> external_product(const TfheConfig& config, const W* ggsw, const Glwe<W>& in);

/// Takes every step of the blind rotation of acc, with the exponents that `switched` gives.
template <class W>
void rotate(const TfheConfig& config, Glwe<W>& acc, std::span<const std::uint32_t> exponents,
            const W* key);

}  // namespace jali::backend::ref
