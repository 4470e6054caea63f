// Blind rotation of a batch, with the modulus switch before it and the extraction after it, in one
// kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/rotation_batch.h"
#include "jali/backend/tfhe_config.h"

namespace jali::backend::cuda {

struct RotationCall : RotationBatch<double2> {
  /// If the keys of steps are summed before (key_sums.cuh), `key` holds the sums of the steps
  /// [first, first + steps), and unless these are the `last`, the accumulators wait in `between`
  /// for the next call.
  std::uint32_t first = 0, steps = 0;
  bool last = true;
  void* between = nullptr;  // words of 32 bits, as many as accumulators have
};

/// Tables of one engine.
struct RotationTables {
  const double2* low = nullptr;  // fft::low_table
  const double2* twist = nullptr;  // fft::twist_table
  const double2* roots = nullptr;  // fft::roots
};

/// Whether the kernel serves a configuration; any_rotation.cuh serves all.
bool rotation_serves(const TfheConfig& config);
/// Bytes of the bootstrapping key in the order in which the kernel reads it.
std::size_t rotation_key_bytes(const TfheConfig& config);
/// Transforms the GGSW ciphertexts of `count` steps from `first` on. ggsws: standard form, the
/// device's.
void prepare_rotation_key(const Stream& stream, const TfheConfig& config,
                          const RotationTables& tables, double2* key, const void* ggsws,
                          std::size_t first, std::size_t count);
/// If the keys of steps are summed before and have no order of this kernel: how many ciphertexts an
/// SM takes at once, and more must not be in one call. Else 0.
std::size_t summed_wave(const TfheConfig& config);
void rotate(const Stream& stream, const TfheConfig& config, const RotationTables& tables,
            const RotationCall& call);

}  // namespace jali::backend::cuda
