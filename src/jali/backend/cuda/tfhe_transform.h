// Which transform the engine of TFHE takes on a GPU. A test runs this on the host, for GPUs that
// are not here.
#pragma once

#include <cstddef>
#include <string>

#include "jali/base/error.h"

namespace jali::backend::cuda {

/// From so many times as fast in FP32 as in FP64, a GPU takes integer transforms. Data-centre chips
/// have a ratio of 2 or 3, all others one of 32 or 64. A step of message_2_carry_2 takes at least
/// 75,000 clocks of an SM that starts two FP64 operations a clock (ratio 64), and some 32,000 in
/// integers; if it starts 64 (ratio 2), 4,400 in FP64.
constexpr int kSlowDoubles = 16;

/// Shared memory of a block, without which the kernels in double precision do not start
/// (rotation_shape.cuh sizes their rings by it): what 9.0 and 10.0 have. 12.0 has 99 KB.
constexpr std::size_t kSharedBytes = 227 << 10;

/// asked: as in TfheConfig; "": choose. generation: major compute capability. ratio: throughput of
/// FP32 over that of FP64. shared: bytes of shared memory that a block may have. Throws Unsupported
/// if the GPU cannot compute what is asked.
inline std::string tfhe_transform(const std::string& asked, int generation, int ratio,
                                  std::size_t shared) {
  const std::string transform = !asked.empty() ? asked : ratio >= kSlowDoubles ? "ntt" : "fft";
  // Kernels in double precision copy in bulk and form clusters, which began with 9.0; tensor cores
  // multiply bytes as the key switch does from 8.0 on.
  require<Unsupported>(transform != "fft" || generation >= 9, [] {
    return "TFHE by transforms in double precision needs a GPU of compute capability 9.0 (H100, "
           "H200) or later: use transform=\"ntt\" or device=\"cpu\"";
  });
  require<Unsupported>(transform != "fft" || shared >= kSharedBytes, [&] {
    return "TFHE by transforms in double precision needs 227 KB of shared memory for a block, and "
           "this GPU has " +
           std::to_string(shared >> 10) + " KB: use transform=\"ntt\" or device=\"cpu\"";
  });
  require<Unsupported>(generation >= 8, [] {
    return "TFHE on a GPU needs compute capability 8.0 or later: use device=\"cpu\"";
  });
  return transform;
}

}  // namespace jali::backend::cuda
