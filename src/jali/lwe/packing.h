// The packing key switch: many LWE ciphertexts become the coefficients of GLWE ciphertexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/lwe/blocks.h"
#include "jali/lwe/keys.h"

namespace jali::lwe {

/// GLWE ciphertexts in the engine's memory, of which number o takes `per` ciphertexts of `in`: its
/// phase has that of in[t] in coefficient coefficients[t], and noise alone in the coefficients that
/// are not named. in: the ciphertexts that users hold, in the engine's memory.
/// backend::TfheOps::pack says what it computes.
///
/// Throws KeyMissing if there is no packing key, ParamsMismatch if the ciphertexts have another
/// shape than those that users hold, and InvalidArgument unless the coefficients of each output are
/// different ones below N.
GlweBlock pack(const backend::TfheOps& engine, const Params& params, const PreparedKeys& keys,
               const backend::ConstLweView& in, std::span<const std::uint32_t> coefficients,
               std::size_t per);

}  // namespace jali::lwe
