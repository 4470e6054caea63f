// The key of a step, summed beforehand. A step of a multi-bit or block-binary rotation multiplies
// the accumulator by sum_u (X^(e_u) - 1) K_u over the GGSW ciphertexts K_u of the step, which
// depends on the ciphertext's exponents e alone. So all multiprocessors sum the keys of all steps
// first, and the rotation, whose steps wait for each other, reads one GGSW ciphertext a step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/blind_rotation/any_rotation.cuh"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/tfhe_config.h"

namespace jali::backend::cuda {

/// Which sums, and of what.
struct SumCall {
  const std::uint32_t* in = nullptr;  // `count` small ciphertexts, the device's
  std::uint32_t count = 0;
  int log_many = 0;
  const double2* key = nullptr;  // in the order of cluster_rotation.cuh
  const double2* roots = nullptr;  // fft::roots
  std::uint32_t first = 0, steps = 0;
  double2* out = nullptr;  // [ciphertext][step - first], each of sum_bytes
};

/// Where rotation_kernel.cuh finds numbers of a summed key: tiles of two points of every thread, in
/// the order in which they are read, [tile][row][column][thread][point]. The points of every other
/// four threads are swapped, so that a quarter warp meets every bank of shared memory once.
struct TileOrder {
  unsigned k1 = 0, threads = 0;
  /// p = 32 thread + i, in the order of the tree of remainders.
  __host__ __device__ std::size_t place(unsigned row, unsigned column, unsigned p) const {
    const unsigned g = p / 32, i = p % 32;
    return (((i / 2 * k1 + row) * k1 + column) * threads + g) * 2 + swapped(i % 2, g);
  }
  __host__ __device__ static unsigned swapped(unsigned point, unsigned thread) {
    return point ^ (thread >> 2 & 1);
  }
};

/// Bytes of the sum of one step and one ciphertext.
std::size_t sum_bytes(const TfheConfig& config);
/// key: the order of the key that is summed. tiles: the sums are written in TileOrder, for which
/// the gadget has one level; else in the order of `key` with one unit. on: a stream of the same
/// GPU, which may be another.
void sum_keys(const Stream& stream, cudaStream_t on, const TfheConfig& config,
              const ClusterKey& key, bool tiles, const SumCall& call);

}  // namespace jali::backend::cuda
