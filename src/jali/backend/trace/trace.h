// A recording of every operation that ran on an engine, for cost and hardware models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jali/backend/engine.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/at_fork.h"

namespace jali::backend {

namespace trace {

/// The sizes and choices that an operation ran with, by name, in the order in which they are written down. Every
/// table has names of its own; those on blocks of residues have
///   n: ring degree; word; primes_in: of the (first) input, empty if there is none; primes_out: of the output,
///   empty for icrt; batch: of the output; digits: limbs of each digit, key_product: the digit ids;
///   terms: products of inner_product and of weighted sums, terms of combinations, words of crt and icrt;
///   galois: of automorphisms; accumulate: the output is read as well;
/// those of TFHE have
///   n, k, N, torus, rotation, group, rotation_gadget and switch_gadget (base_log, levels): the engine's configuration;
///   batch: ciphertexts that are switched or bootstrapped, or that are written by combine and extract; steps of a rotation;
///   tables, encrypted, log_many: of bootstrapping; terms: weights of combine; per: of extract.
class Shape {
 public:
  using List = std::vector<std::uint64_t>;
  using Value = std::variant<std::uint64_t, bool, std::string, List>;

  template <class Range>
  static List list_of(const Range& range) {
    return List(range.begin(), range.end());
  }

  /// A name that is there keeps its place.
  void set(const std::string& name, Value value);
  /// The value of a name, of the type that was set; InvalidArgument if there is none.
  std::uint64_t number(const std::string& name) const;
  bool flag(const std::string& name) const;
  const List& list(const std::string& name) const;
  const std::vector<std::pair<std::string, Value>>& values() const { return values_; }

 private:
  template <class T>
  const T& get(const std::string& name) const;
  std::vector<std::pair<std::string, Value>> values_;
};

}  // namespace trace

/// Memory that an operation touches: where it begins, and how many bytes are read or written there.
/// Two operations depend on each other if an extent that one writes overlaps an extent of the
/// other. Addresses are those of the process, and are reused by later blocks.
struct Extent {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// One operation that ran. Its shape is enough to price it on another machine.
struct Record {
  std::string op;  // its name in its table
  trace::Shape shape;
  std::vector<Extent> reads;
  std::vector<Extent> writes;
  std::uint64_t bytes_read = 0;  // sum of reads: each operand once, no intermediates
  std::uint64_t bytes_written = 0;  // sum of writes
  std::uint64_t mults =
      0;  // multiplications modulo primes or, in TFHE, 2^w, by the formulas of cost.h
  std::uint64_t stream_bytes = 0;  // of ChaCha20 that sampling cannot do without
  std::uint64_t complex_butterflies = 0;  // of transforms in complex doubles: the embedding, TFHE
  std::uint64_t complex_products =
      0;  // of complex doubles, added to sums: TFHE's external products
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
  std::uint64_t complex_products = 0;
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
  /// One JSON object a line and a record, with the names of Record and of its shape as keys.
  std::string json_lines() const;
  /// A table for people: count, megabytes, millions of multiplications and milliseconds.
  std::string summary() const;

 private:
  mutable ForkSafe<std::mutex> mutex_;
  std::vector<Record> records_;
};

/// An engine that hands every operation to `inner` and then records it in `sink`. An operation that
/// throws is not recorded. Results are those of inner; its name is "trace(" + inner's + ")".
std::unique_ptr<Engine> make_trace_engine(std::shared_ptr<const Engine> inner,
                                          std::shared_ptr<Trace> sink);
/// The same of an engine of TFHE. Preparing keys is recorded, too.
std::unique_ptr<TfheOps> make_trace_tfhe(std::shared_ptr<const TfheOps> inner,
                                         std::shared_ptr<Trace> sink);

}  // namespace jali::backend
