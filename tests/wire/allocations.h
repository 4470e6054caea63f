// Counts what is allocated, in this test program: through operator new, and through the pool, which
// calls aligned_alloc.
#pragma once

#include <cstddef>

namespace jali::testing {

/// Bytes allocated since the program began.
std::size_t allocated_bytes();

}  // namespace jali::testing
