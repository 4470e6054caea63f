// Ctrl-C in long work.
#pragma once

#include "jali/base/checkpoint.h"

namespace jali::python {

/// Runs Python's handlers of the signals that came, ten times a second where the main thread works: the one that
/// Python lets handle them. What a handler raises, as Ctrl-C does, ends the work.
Checkpoint interrupts();

}  // namespace jali::python
