// The cluster kernels of one k and N. They are compiled in several files.
#pragma once

#include "jali/backend/cuda/blind_rotation/cluster_rotation.cuh"

namespace jali::backend::cuda {

struct ClusterArgs {
  RotationCall call;
  AnyTables tables;
  unsigned n, steps;
  int levels, base_log, torus;
  double mean;
};

/// Blocks: of a cluster. Points: of a thread. Levels: of the gadget, that are transformed at once;
/// the gadget's levels are a multiple. Summed: the call's key holds a sum for each step and
/// ciphertext (key_sums.cuh); else the rotation is classic.
template <int LogN, int K1, int Blocks, int Points, int Levels, bool Summed>
struct ClusterSize {
  static constexpr unsigned blocks = Blocks, points = Points;
  /// How many clusters the current GPU runs at once.
  static std::size_t at_once();
  static void rotate(const Stream& stream, const ClusterArgs& args);
};

extern template struct ClusterSize<11, 2, 8, 8, 1, false>;
extern template struct ClusterSize<11, 2, 4, 4, 2, false>;
extern template struct ClusterSize<11, 2, 4, 4, 3, false>;
extern template struct ClusterSize<10, 2, 4, 4, 1, false>;
extern template struct ClusterSize<10, 2, 8, 8, 2, false>;
extern template struct ClusterSize<10, 2, 4, 4, 3, false>;
extern template struct ClusterSize<10, 3, 4, 4, 1, false>;
extern template struct ClusterSize<9, 4, 4, 4, 1, false>;
extern template struct ClusterSize<9, 4, 4, 4, 2, false>;
extern template struct ClusterSize<9, 5, 4, 4, 1, false>;
extern template struct ClusterSize<11, 2, 8, 8, 1, true>;
extern template struct ClusterSize<11, 2, 4, 4, 1, true>;
extern template struct ClusterSize<10, 2, 4, 4, 1, true>;
extern template struct ClusterSize<10, 3, 4, 4, 1, true>;
extern template struct ClusterSize<9, 4, 4, 4, 1, true>;
extern template struct ClusterSize<9, 5, 4, 4, 1, true>;
extern template struct ClusterSize<12, 2, 4, 16, 1, false>;
extern template struct ClusterSize<13, 2, 4, 16, 1, false>;
extern template struct ClusterSize<14, 2, 8, 16, 1, false>;

}  // namespace jali::backend::cuda
