// How much an evaluator has been asked to do, for a service's metrics.
#pragma once

#include <atomic>
#include <cstdint>

namespace jali::python {

/// Calls that succeeded since the evaluator was made. One call counts once, whatever its batch and
/// whatever it is made of: a bootstrapping does many rotations, and they do not count.
struct Counters {
  using Count = std::atomic<std::uint64_t>;
  Count additions = 0;         // of ciphertexts, numbers and arrays, and subtractions
  Count products = 0;          // of ciphertexts
  Count plain_products = 0;    // with numbers and arrays
  Count rotations = 0;
  Count conjugations = 0;
  Count sums = 0;              // over slots
  Count matrix_products = 0;   // matrix-vector products and linear maps
  Count polynomials = 0;        // and functions made of them, maxima and argmax
  Count bootstraps = 0;
  Count programs = 0;          // runs of captured functions
  Count bytes_peak = 0;        // of the pool, before its peak was last taken
  Count copies_to_device = 0;  // of ciphertexts
  Count copies_to_host = 0;
  Count fallbacks = 0;  // ways that were found around missing keys or memory; each is logged, once
};

/// One more. Relaxed: a count orders nothing.
inline void count(Counters::Count& of) { of.fetch_add(1, std::memory_order_relaxed); }

}  // namespace jali::python
