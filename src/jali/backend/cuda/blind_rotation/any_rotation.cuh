// Blind rotation for every configuration: one block a ciphertext, transforms in shared memory where
// they fit, everything else in the device's memory. blind_rotation.cuh serves common sizes several
// times as fast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"

namespace jali::backend::cuda {

/// Where the kernels of cluster_rotation.cuh find numbers of the bootstrapping key:
/// [step][level][block of the cluster][unit][row][column][point of a thread][thread].
struct ClusterKey {
  unsigned blocks = 0;  // of a cluster; 0: such kernels do not serve the configuration
  unsigned levels = 0, k1 = 0, units = 0;
  unsigned part = 0;  // points of a block
  unsigned points = 0;  // of a thread

  /// row: of the GGSW ciphertext, (polynomial, level). p: in the order of the tree of remainders.
  __host__ __device__ std::size_t place(std::size_t step, unsigned row, unsigned unit,
                                        unsigned column, unsigned p) const {
    const unsigned local = p % part;
    std::size_t at = (step * levels + row % levels) * blocks + p / part;
    at = ((at * units + unit) * k1 + row / levels) * k1 + column;
    return at * part + local % points * (part / points) + local / points;
  }
};

/// Tables of one engine: fft::tree, fft::roots.
struct AnyTables {
  const double2* tree = nullptr;
  const double2* roots = nullptr;
};

std::size_t any_rotation_key_bytes(const TfheConfig& config);
/// order.blocks == 0: in the order that rotate_any takes; else as cluster_rotation.cuh takes it.
void prepare_any_rotation_key(const Stream& stream, const TfheConfig& config,
                              const AnyTables& tables, double2* key, const void* ggsws,
                              std::size_t first, std::size_t count, void* scratch,
                              const ClusterKey& order);
/// Blocks that rotate at once, each with a part of the scratch memory.
unsigned any_blocks(const Stream& stream, const TfheConfig& config, std::size_t count);
std::size_t any_scratch_bytes(const TfheConfig& config, unsigned blocks);
void rotate_any(const Stream& stream, const TfheConfig& config, const AnyTables& tables,
                const RotationCall& call, unsigned blocks, void* scratch);

}  // namespace jali::backend::cuda
