// The commit of the sources that this extension was built from.
#pragma once

namespace jali::python {

/// As `git describe --always --dirty` says it; "unknown" if the sources were no checkout. See
/// cmake/commit.cmake.
const char* commit();

}  // namespace jali::python
