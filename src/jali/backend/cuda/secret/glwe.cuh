// Bodies of GLWE ciphertexts under a secret (TfheClientOps::encrypt_gadget).
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/secret/tfhe_client_ops.h"

namespace jali::backend::cuda {

/// masks: k N words of each ciphertext.
void encrypt_gadget(const Stream& stream, const TfheConfig& config, void* out, std::size_t count,
                    const void* masks, const std::uint8_t* secret, const GadgetBits& bits,
                    const Draws& draws);

}  // namespace jali::backend::cuda
