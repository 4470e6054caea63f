// LWE encryption and phases in host memory, on the calling thread: what the CPU engine does for a
// piece of a batch, and what serves code that has no engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/secret/tfhe_client_ops.h"

namespace jali::backend {

/// As TfheClientOps::encrypt_bodies.
void encrypt_lwe_bodies(void* out, std::size_t count, Torus torus, LweDimension dimension,
                        const std::uint8_t* secret, const std::uint64_t* messages,
                        const Draws& draws);
/// As TfheClientOps::phases.
void lwe_phases(std::uint64_t* out, ConstLweView in, const std::uint8_t* secret);

}  // namespace jali::backend
