// What one thread of a CPU does at most, beside cpu_butterfly_rate (engines.h). A call measures for
// some milliseconds. Benchmarks divide an operation's work by these rates for its least time. isa:
// as in Config.
#pragma once

#include <cstddef>
#include <string>

namespace jali::backend {

/// Butterflies x + w y, x - w y of complex doubles a second, every product and sum rounded on its
/// own, with all operands in registers: the embedding's.
double cpu_complex_butterfly_rate(const std::string& isa);
/// Bytes read a second if a block of this size is read over and over, from the cache that holds it.
/// No operation that reads or writes as many bytes takes less time.
double cpu_read_rate(const std::string& isa, std::size_t bytes);
/// Bytes of a ChaCha20 stream a second, kept in the first cache.
double cpu_stream_rate();

}  // namespace jali::backend
