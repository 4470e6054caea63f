// The processor that this process runs on.
#pragma once

#include <string>

namespace jali::device {

/// Its model, e.g. "AMD EPYC 9654 96-Core Processor", or its architecture, if the system does not
/// say.
std::string processor();
/// Cores that this process may use, at least 1: a container or taskset may grant fewer than the
/// machine has.
int cores();

}  // namespace jali::device
