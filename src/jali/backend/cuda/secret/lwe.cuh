// Bodies and phases of LWE ciphertexts under a secret (TfheClientOps).
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/secret/tfhe_client_ops.h"

namespace jali::backend::cuda {

void encrypt_bodies(const Stream& stream, void* out, std::size_t count, Torus torus,
                    LweDimension dimension, const std::uint8_t* secret,
                    const std::uint64_t* messages, const Draws& draws);
void phases(const Stream& stream, std::uint64_t* out, ConstLweView in, const std::uint8_t* secret);

}  // namespace jali::backend::cuda
