// LWE key switching of a batch, as an exact matrix product modulo 2^32 on INT8 tensor cores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/tfhe_config.h"

namespace jali::backend::cuda {

std::size_t switch_key_bytes(const TfheConfig& config);
/// rows: as prepare_switch_key of TfheOps says, the device's.
void prepare_switch_key(const Stream& stream, const TfheConfig& config, void* key,
                        const std::uint32_t* rows);
/// Bytes of the digits of `count` ciphertexts.
std::size_t digit_bytes(const TfheConfig& config, std::size_t count);
/// digits: scratch of digit_bytes.
void key_switch(const Stream& stream, const TfheConfig& config, std::uint32_t* out, const void* in,
                std::size_t count, const void* key, void* digits);

}  // namespace jali::backend::cuda
