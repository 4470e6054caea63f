// What a reader demands of the parameters in bytes (Limits::min_security and max_log2_p_fail), for
// every scheme.
#pragma once

#include "jali/wire/frame.h"

namespace jali::wire {

/// Throws InvalidArgument unless the demands are some that parameters can meet.
void check_demands(const Limits& limits);

/// Throws InsecureParams if less security was found than is demanded. security: in bits.
void demand_security(const Limits& limits, int security);

/// Throws InsecureParams if failures are likelier than is demanded.
void demand_failure(const Limits& limits, double log2_p_fail);

}  // namespace jali::wire
