// Counts what this test program allocates through operator new, and through the pool, which calls
// posix_memalign.
#pragma once

#include <cstddef>

namespace jali::testing {

/// Bytes allocated since the program began.
std::size_t allocated_bytes();

}  // namespace jali::testing
