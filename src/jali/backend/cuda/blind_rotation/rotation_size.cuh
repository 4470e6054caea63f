// The kernels of one k and N. Each size is compiled in a file of its own.
#pragma once

#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"

namespace jali::backend::cuda {

/// See the functions of blind_rotation.cuh.
template <int LogN, int K1>
struct RotationSize {
  static bool serves(const TfheConfig& config);
  static std::size_t key_bytes(const TfheConfig& config);
  static void prepare(const Stream& stream, const TfheConfig& config, const RotationTables& tables,
                      double2* key, const void* ggsws, std::size_t first, std::size_t count);
  static std::size_t summed_wave(const TfheConfig& config);
  static void rotate(const Stream& stream, const TfheConfig& config, const RotationTables& tables,
                     const RotationCall& call);
};

extern template struct RotationSize<11, 2>;
extern template struct RotationSize<10, 2>;
extern template struct RotationSize<10, 3>;
extern template struct RotationSize<9, 4>;
extern template struct RotationSize<9, 5>;

}  // namespace jali::backend::cuda
