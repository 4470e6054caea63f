// What the processor can do, where kernels for its extensions exist. False everywhere on other
// machines.
#pragma once

namespace jali {

/// Instructions that the processor has and whose registers the operating system saves.
struct CpuFeatures {
  bool sse41 = false;
  bool sha = false;
  bool avx2 = false;
  bool fma = false;
  bool avx512 = false;  // F, DQ, BW and VL
  bool ifma = false;  // AVX-512 IFMA
};

/// Those of this machine. Not by __builtin_cpu_supports, which names no feature when Zig links the
/// program.
const CpuFeatures& cpu_features();

}  // namespace jali
