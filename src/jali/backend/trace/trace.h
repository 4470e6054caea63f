// A recording of every operation that ran on an engine, for cost and hardware models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "jali/backend/ops.h"
#include "jali/base/at_fork.h"

namespace jali::backend {

/// Memory that an operation touches: where it begins, and how many bytes are read or written there.
/// Two operations depend on each other if an extent that one writes overlaps an extent of the
/// other. Addresses are those of the process, and are reused by later blocks.
struct Extent {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// One operation that ran. Its shape is enough to price it on another machine.
struct Record {
  std::string op;     // name in ops.h
  std::size_t n = 0;  // ring degree
  Word word = Word::w64;
  std::vector<PrimeIndex> primes_in;   // of the (first) input; empty where there is none
  std::vector<PrimeIndex> primes_out;  // of the output; empty for icrt
  std::size_t batch = 1;               // of the output
  std::vector<std::uint32_t> digits;   // limbs of each digit; key_product: the digit ids
  std::size_t terms =
      1;  // inner_product, weighted_sums: number of products; combinations: of terms; crt, icrt: words
  std::uint64_t galois = 1;  // automorphisms and key_product
  bool accumulate = false;  // the output is read as well
  std::vector<Extent> reads;
  std::vector<Extent> writes;
  std::uint64_t bytes_read = 0;  // sum of reads: each operand once, no intermediates
  std::uint64_t bytes_written = 0;  // sum of writes
  std::uint64_t mults = 0;  // modular multiplications by the formulas of cost.h
  std::uint64_t stream_bytes = 0;  // of ChaCha20 that sampling cannot do without
  std::uint64_t complex_butterflies = 0;  // of the embedding
  double seconds = 0;  // wall time of the call
};

/// Totals of one kind of operation.
struct Total {
  std::string op;
  std::uint64_t count = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t mults = 0;
  std::uint64_t stream_bytes = 0;
  std::uint64_t complex_butterflies = 0;
  double seconds = 0;
};

/// Where records are kept, in the order in which operations ended. Safe to use from many threads.
class Trace {
 public:
  void append(Record record);
  void clear();
  std::size_t size() const;
  std::vector<Record> records() const;

  /// One entry an operation, by name; the sums over all records.
  std::vector<Total> totals() const;
  /// One JSON object a line and a record, with the names of Record as keys.
  std::string json_lines() const;
  /// A table for people: count, megabytes, millions of multiplications and milliseconds.
  std::string summary() const;

 private:
  mutable ForkSafe<std::mutex> mutex_;
  std::vector<Record> records_;
};

/// An engine that hands every operation to `inner` and then records it in `sink`. An operation that
/// throws is not recorded. Results are those of inner; its name is "trace(" + inner's + ")".
std::unique_ptr<Ops> make_trace_ops(std::shared_ptr<const Ops> inner, std::shared_ptr<Trace> sink);

}  // namespace jali::backend
