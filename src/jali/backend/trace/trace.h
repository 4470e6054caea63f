// A recording of every operation that ran on an engine, for cost and hardware models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jali/backend/engine.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/backend/trace/objects.h"
#include "jali/base/at_fork.h"

namespace jali::backend {

namespace trace {

/// The sizes and choices that an operation ran with, by name, in the order in which they are
/// written down. docs/format.md says what each is. Every table has names of its own; those on
/// blocks of residues have
///   primes_in: of the (first) input, empty if there is none; primes_out: of the output, empty for
///   icrt; batch: of the output; digits: limbs of each digit, key_product and rotated_sums: the
///   digit ids; terms: products of inner_product and of weighted sums, terms of combinations, words
///   of crt and icrt; products: terms of a combination that are products of ciphertexts; galois: of
///   the automorphism, or of every operand of rotated_sums and every term of outer_sum, 1 for none;
///   sources: of every operand of rotated_sums, which ciphertext it is made of; sums: terms of each
///   weighted sum; operands: of each of these terms; accumulate: the output is read as well;
/// those of TFHE have
///   batch: ciphertexts that are switched or bootstrapped, or that are written by combine and
///   extract; steps of a rotation; tables, encrypted, log_many: of bootstrapping; terms: weights of
///   combine; per: of extract.
/// The header of a trace has what is the same for all operations: the engine's configuration.
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

/// How switching keys are made, for the header of a trace. Empty if that is not known.
struct KeyLayout {
  Shape::List digits;  // limbs of each digit of a whole key
  std::uint64_t special_primes = 0;  // the last primes of the engine, whose product is P
};

}  // namespace trace

/// One operation that ran. With the header of its trace, its shape is enough to price it on another
/// machine.
struct Record {
  std::string op;  // its name in its table
  std::uint64_t start = 0;  // how many operations of the trace began before it
  /// The thread that called it; threads are numbered in the order of their first operation.
  std::uint64_t thread = 0;
  trace::Shape shape;
  std::vector<Extent> reads;
  std::vector<Extent> writes;
  std::uint64_t bytes_read = 0;  // sum of reads: each operand once, no intermediates
  std::uint64_t bytes_written = 0;  // sum of writes
  /// Multiplications modulo primes or, in TFHE, 2^w, by the formulas of cost.h.
  std::uint64_t mults = 0;
  std::uint64_t stream_bytes = 0;  // of ChaCha20 that sampling cannot do without
  std::uint64_t complex_butterflies = 0;  // of transforms in complex doubles: the embedding, TFHE
  /// Of complex doubles, added to sums: TFHE's external products.
  std::uint64_t complex_products = 0;
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
  /// Of the text that json_lines writes. It counts up with every change that a reader has to know.
  static constexpr std::uint64_t kSchema = 1;

  /// commit: of the sources of the program that records, for the header: 1 to 200 printable
  /// characters of ASCII without quotation marks and backslashes, or InvalidArgument.
  explicit Trace(const std::string& commit = "unknown");

  /// Sets an entry of the header. A trace is of one engine: throws InvalidArgument if the entry has
  /// another value.
  void describe(const std::string& name, trace::Shape::Value value);
  trace::Shape header() const;
  /// Numbers an operation that begins, and its thread.
  void start(Record& record);
  void append(Record record);
  /// Forgets the records. Numbers and the objects go on.
  void clear();
  std::size_t size() const;
  std::vector<Record> records() const;
  trace::Objects& objects() { return objects_; }

  /// One entry an operation, by name; the sums over all records.
  std::vector<Total> totals() const;
  /// One JSON object a line: the header, then the records. docs/format.md defines every field.
  std::string json_lines() const;
  /// A table for people: count, megabytes, millions of multiplications and milliseconds.
  std::string summary() const;

 private:
  mutable ForkSafe<std::mutex> mutex_;
  trace::Shape header_;
  std::uint64_t started_ = 0;
  std::unordered_map<std::thread::id, std::uint64_t> threads_;
  std::vector<Record> records_;
  trace::Objects objects_;
};

/// An engine that hands every operation to `inner` and then records it in `sink`, which is of this
/// engine alone. An operation that throws is not recorded. Results are those of inner; its name is
/// "trace(" + inner's + ")". keys: what an engine does not know of its switching keys.
std::unique_ptr<Engine> make_trace_engine(std::shared_ptr<const Engine> inner,
                                          std::shared_ptr<Trace> sink, trace::KeyLayout keys = {});
/// The same of an engine of TFHE. Preparing keys is recorded, too.
std::unique_ptr<TfheOps> make_trace_tfhe(std::shared_ptr<const TfheOps> inner,
                                         std::shared_ptr<Trace> sink);

}  // namespace jali::backend
