// Ctrl-C during long operations.
#pragma once

#include "jali/base/checkpoint.h"

namespace jali::python {

/// A checkpoint that runs Python's handlers of signals that have arrived, at most ten times a
/// second, if the main thread calls it. Only that thread may run them. If a handler raises, as that
/// of Ctrl-C does, the operation ends.
Checkpoint interrupts();

}  // namespace jali::python
