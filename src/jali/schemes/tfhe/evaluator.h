// Computes on encrypted vectors: sums with small integer weights, and any function of one or two
// values by look-up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/tfhe_ops.h"
#include "jali/base/checkpoint.h"
#include "jali/base/progress.h"
#include "jali/lwe/keys.h"
#include "jali/schemes/tfhe/ciphertext.h"
#include "jali/schemes/tfhe/compact.h"
#include "jali/schemes/tfhe/table.h"

namespace jali::tfhe {

/// A table in an engine's memory. Made by Evaluator::bind; use it with that evaluator.
struct BoundTable {
  std::shared_ptr<const LookUpTable> table;
  std::shared_ptr<const device::Buffer> data;
};

/// Several tables, of which each element of a vector takes one.
struct BoundTables {
  std::vector<LookUpTable> tables;
  std::shared_ptr<const device::Buffer> data;
};

/// A sparse matrix of small integers by rows, with a constant for each row: row r of the result is
/// sum of weight * element(column) + constant, over the entries [begin[r], begin[r + 1]).
struct Linear {
  std::vector<std::uint32_t> begin{0};
  std::vector<std::uint32_t> column;
  std::vector<std::int64_t> weight;
  std::vector<std::int64_t> constant;  // one for each row, or none

  std::size_t rows() const { return begin.size() - 1; }
  /// Adds an entry to the row that is being written.
  void add(std::uint32_t of, std::int64_t times) {
    column.push_back(of);
    weight.push_back(times);
  }
  /// Ends the row.
  void end_row(std::int64_t plus = 0) {
    begin.push_back(static_cast<std::uint32_t>(column.size()));
    constant.push_back(plus);
  }
  /// This matrix for each of `times` groups of `columns` elements that lie one after the other: the
  /// rows of the first group, then those of the second, and so on. Throws LimitExceeded if numbers
  /// of elements pass 32 bits.
  Linear repeated(std::size_t times, std::size_t columns) const;
};

/// All operations check their operands before they compute, and throw
/// - KeyMismatch or ParamsMismatch if they belong to another client or other parameters;
/// - RangeExceeded if a value could be negative or reach value_modulus(), the room above the
///   carries, or if the error could become larger than the parameters allow for
///   (params.max_norm2()). The sentence says what to do;
/// - InvalidArgument if sizes do not fit.
/// Operands must be in the engine's memory (bind). Results are vectors of at most 2^32 - 1
/// elements. All operations may be used from several threads.
class Evaluator {
 public:
  /// Gives the keys to the engine, which must be made for params.config(). Throws ParamsMismatch if
  /// it is not.
  Evaluator(std::shared_ptr<const backend::TfheOps> engine, const lwe::EvaluationKeys& keys,
            const Progress& progress = {}, const Checkpoint& checkpoint = {});

  const ParamsPtr& params() const { return params_; }
  const KeyId& key_id() const { return key_id_; }
  /// What computes, and the keys in its memory: for layers above that keep an account of values and
  /// noise of their own.
  const backend::TfheOps& engine() const { return *engine_; }
  /// The keys in the engine's form, for code that calls the engine itself.
  const lwe::PreparedKeys& prepared_keys() const { return *keys_; }
  /// What the device could still give: what nobody has, and what its pool keeps for reuse. It is
  /// device::kUnknown on a host, and during a recording, which may not ask the driver.
  std::size_t free_bytes() const;
  /// How many inputs may be looked up at once: a quarter of what is free goes to accumulators, to
  /// their results in the other dimension, and to the digits of key switching. At least 1; the
  /// largest number if what is free is not known.
  std::size_t rotations_that_fit() const;

  // --- to and from the engine ---
  Ciphertext bind(const Ciphertext& a) const;
  /// What was encrypted under the public key, in the engine's memory. If users hold small
  /// ciphertexts, it is switched to them.
  Ciphertext bind(const CompactCiphertext& a) const;
  Ciphertext host_copy(const Ciphertext& a) const;
  /// The same ciphertext with words of its own.
  Ciphertext copy(const Ciphertext& a) const;
  BoundTable bind(const LookUpTable& table) const;
  BoundTables bind(std::span<const LookUpTable> tables) const;
  /// Values that anybody can read, as a vector that operations take. Throws InvalidArgument if one
  /// is not below value_modulus().
  Ciphertext clear(std::span<const std::uint64_t> values) const;

  // --- sums: these compute without bootstrapping, and noise and values grow ---
  /// The elements of all inputs one after the other are the columns.
  Ciphertext linear(std::span<const Ciphertext* const> inputs, const Linear& matrix) const;
  Ciphertext linear(const Ciphertext& a, const Linear& matrix) const;
  /// The same without a bound from the operands' degrees: the caller knows that every row is from 0
  /// to `largest`, and that becomes the degree. A row that is not counts modulo 2 value_modulus(),
  /// and decryption may find it (WrongDecryption). For such a row v, look-ups give minus the entry
  /// at v - value_modulus(). Weights are at most value_modulus() in size.
  Ciphertext linear_within(const Ciphertext& a, const Linear& matrix, std::uint64_t largest) const;
  /// Element by element; an operand of one element is taken for every element of the other.
  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  /// a - b modulo 2^message_bits: the smallest multiple of it that is at least the degree of b is
  /// added, so that no value is negative.
  Ciphertext subtract(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  /// Times small integers of at least 0, one for each element or one for all.
  Ciphertext scale(const Ciphertext& a, std::span<const std::uint64_t> factors) const;
  Ciphertext scale(const Ciphertext& a, std::uint64_t factor) const;
  Ciphertext add_clear(const Ciphertext& a, std::span<const std::uint64_t> values) const;
  Ciphertext add_clear(const Ciphertext& a, std::uint64_t value) const;
  /// The elements with these indices, in this order.
  Ciphertext gather(const Ciphertext& a, std::span<const std::uint32_t> indices) const;
  Ciphertext concatenate(std::span<const Ciphertext* const> parts) const;

  // --- look-ups: one programmable bootstrapping an element, whose result is fresh ---
  Ciphertext apply(const Ciphertext& a, const BoundTable& table) const;
  Ciphertext apply(const Ciphertext& a, const LookUpTable& table) const;
  /// Element i takes table which[i].
  Ciphertext apply(const Ciphertext& a, const BoundTables& tables,
                   std::span<const std::uint32_t> which) const;
  /// Every function of a table of several (LookUpTable::together), by one rotation an element.
  std::vector<Ciphertext> apply_all(const Ciphertext& a, const BoundTable& table) const;
  std::vector<Ciphertext> apply_all(const Ciphertext& a, const LookUpTable& table) const;
  /// f(x, y) of LookUpTable::of_two: looks up y 2^message_bits + x.
  Ciphertext apply(const Ciphertext& x, const Ciphertext& y, const BoundTable& table) const;
  Ciphertext apply(const Ciphertext& x, const Ciphertext& y, const LookUpTable& table) const;
  /// The same values modulo 2^message_bits with fresh noise.
  Ciphertext refresh(const Ciphertext& a) const;

 private:
  friend class Gates;
  void check_owner(const ParamsPtr& params, const KeyId& key_id) const;
  void check(const Ciphertext& a) const;
  void check_room(const Ciphertext& a, const LookUpTable& table) const;
  /// The combination whose rows have these degrees.
  Ciphertext linear_of(std::span<const Ciphertext* const> inputs, const Linear& matrix,
                       std::vector<std::uint32_t> degree) const;
  /// The rows of a combination whose weights and constants (words of the torus) are given, without
  /// a check of values.
  std::shared_ptr<const lwe::LweBlock> combined(const lwe::LweBlock& in, const Linear& matrix,
                                                std::span<const std::uint64_t> constants) const;
  /// Runs run(first, count, tables of these inputs) for parts of the inputs that the memory allows.
  template <class F>
  void in_parts(std::size_t count, const backend::TableView& tables, const F& run) const;
  /// 2^log_many rows for each of the input, in as few parts as the memory allows.
  std::shared_ptr<const lwe::LweBlock> bootstrapped(const lwe::LweBlock& in,
                                                    const backend::TableView& tables) const;
  /// Each of these coefficients of the rotated table, of every input: one block for each
  /// coefficient. In parts, too.
  std::vector<std::shared_ptr<const lwe::LweBlock>> rotated(
      const lwe::LweBlock& in, const backend::TableView& table,
      std::span<const std::uint32_t> coefficients) const;
  Ciphertext made(std::shared_ptr<const lwe::LweBlock> data, const KeyId& key_id,
                  std::vector<std::uint32_t> degree, History history) const;

  ParamsPtr params_;
  KeyId key_id_;
  std::shared_ptr<const backend::TfheOps> engine_;
  std::shared_ptr<const lwe::PreparedKeys> keys_;
};

}  // namespace jali::tfhe
