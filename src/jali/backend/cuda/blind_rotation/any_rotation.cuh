// Blind rotation for every configuration: one block a ciphertext, transforms in shared memory where they fit, everything
// else in the device's memory. blind_rotation.cuh serves common sizes several times as fast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"

namespace jali::backend::cuda {

/// Tables of one engine: fft::tree, fft::roots.
struct AnyTables {
  const double2* tree = nullptr;
  const double2* roots = nullptr;
};

std::size_t any_rotation_key_bytes(const TfheConfig& config);
void prepare_any_rotation_key(const Stream& stream, const TfheConfig& config, const AnyTables& tables,
                              double2* key, const void* ggsws, std::size_t first, std::size_t count,
                              void* scratch);
/// Blocks that rotate at once, each with a part of the scratch memory.
unsigned any_blocks(const Stream& stream, const TfheConfig& config, std::size_t count);
std::size_t any_scratch_bytes(const TfheConfig& config, unsigned blocks);
void rotate_any(const Stream& stream, const TfheConfig& config, const AnyTables& tables,
                const RotationCall& call, unsigned blocks, void* scratch);

}  // namespace jali::backend::cuda
