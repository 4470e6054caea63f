// Linear combinations of LWE ciphertexts, extraction from GLWE ciphertexts, and small uploads that
// graphs can record.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/tfhe_config.h"

namespace jali::backend::cuda {

/// LweCombination of tfhe_ops.h on the device. constant may be null.
struct DeviceCombination {
  const std::uint32_t *begin, *column;
  const std::int64_t* weight;
  const std::uint64_t* constant;
};
void combine(const Stream& stream, LweView out, ConstLweView in,
             const DeviceCombination& combination);
void extract(const Stream& stream, const TfheConfig& config, void* out, const void* in,
             const std::uint32_t* coefficients, std::size_t rows, std::size_t per);
/// Writes bytes that are kept in the parameters of kernels, so that a graph may contain it.
void upload(const Stream& stream, void* to, const void* host, std::size_t bytes);

}  // namespace jali::backend::cuda
