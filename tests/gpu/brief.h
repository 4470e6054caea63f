// What tests leave out under compute-sanitizer, which slows a kernel down a thousand times.
#pragma once

#include <cstdlib>

namespace jali::testing {

/// JALI_GPU_TESTS=brief (tools/gpu_sanitize.sh): on long rows every kernel still runs, though not
/// with every variant of another or number of operands.
inline bool brief(std::size_t n) { return n >= (1u << 14) && std::getenv("JALI_GPU_TESTS"); }

}  // namespace jali::testing
