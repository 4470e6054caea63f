// Ceilings of a CPU beside cpu_butterfly_rate (engines.h), of one thread, each measured now for some
// milliseconds: floors of operations divide by these. isa as in Config.
#pragma once

#include <cstddef>
#include <string>

namespace jali::backend {

/// Butterflies x + w y, x - w y of complex doubles a second, every product and sum rounded on its own,
/// with all operands in registers: the embedding's.
double cpu_complex_butterfly_rate(const std::string& isa);
/// Bytes a second when a block of so many is read over and over, from the cache that holds it: nothing
/// that reads or writes as many takes less time.
double cpu_read_rate(const std::string& isa, std::size_t bytes);
/// Bytes of a ChaCha20 stream a second, kept in the first cache.
double cpu_stream_rate();

}  // namespace jali::backend
