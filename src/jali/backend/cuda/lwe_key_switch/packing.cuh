// The packing key switch: LWE ciphertexts as coefficients of GLWE ciphertexts, by plain products
// modulo 2^w.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/tfhe_config.h"

namespace jali::backend::cuda {

/// As pack of TfheOps says. All is the device's.
void pack(const Stream& stream, const TfheConfig& config, void* out, std::size_t outputs,
          ConstLweView in, const std::uint32_t* coefficients, std::size_t per, const void* key);

}  // namespace jali::backend::cuda
