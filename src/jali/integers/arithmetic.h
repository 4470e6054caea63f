// Encrypted integers: vectors of them, and everything that is computed with them.
//
// An operation is a circuit that is built once for its types and kept. If there are several
// circuits for an operation, of little depth or of few look-ups, the one is run that takes the
// least time for as many integers as there are.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jali/integers/bits.h"
#include "jali/integers/circuit.h"
#include "jali/integers/divide.h"

namespace jali::integers {

/// A vector of encrypted integers of one type.
class Integers {
 public:
  /// rows: count * type.digits(m) digits, those of one integer together, the lowest first; none has
  /// more noise than `noise`.
  Integers(IntegerType type, std::size_t count, std::shared_ptr<const Rows> rows, double noise = 1)
      : type_(type), count_(count), rows_(std::move(rows)), noise_(noise) {}

  IntegerType type() const { return type_; }
  std::size_t count() const { return count_; }
  const Rows& rows() const { return *rows_; }
  double noise() const { return noise_; }

 private:
  IntegerType type_;
  std::size_t count_;
  std::shared_ptr<const Rows> rows_;
  double noise_;
};

/// Clear integers: one for all, or one each. Several take a circuit that serves all values, one
/// takes a circuit of its own.
struct Clear {
  std::vector<Wide> values;
  bool scalar = false;

  Clear(Wide value) : values{value}, scalar(true) {}
  explicit Clear(std::vector<Wide> each) : values(std::move(each)) {}
};

/// An operand, encrypted or clear.
class Value {
 public:
  Value(const Integers& integers) : encrypted_(&integers) {}
  Value(const Clear& clear) : clear_(&clear) {}
  const Integers* encrypted() const { return encrypted_; }
  const Clear* clear() const { return clear_; }

 private:
  const Integers* encrypted_ = nullptr;
  const Clear* clear_ = nullptr;
};

enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal };

/// Operands have one type, and as many integers as each other, or one. Clear operands take the type
/// of the encrypted one, and must be numbers of it. At least one operand is encrypted. Else
/// InvalidArgument is thrown, with what to change. Results are modulo 2^bits. Every method may be
/// called from several threads at once.
class Arithmetic {
 public:
  explicit Arithmetic(std::shared_ptr<const Machine> machine);

  const Machine& machine() const { return *machine_; }

  Integers add(Value x, Value y) const;
  Integers subtract(Value x, Value y) const;
  Integers multiply(Value x, Value y) const;
  Integers negate(const Integers& x) const;
  /// The result, and 1 where the true one is no number of the type.
  using Flagged = std::pair<Integers, Integers>;
  Flagged add_overflow(Value x, Value y) const;
  Flagged subtract_overflow(Value x, Value y) const;
  Flagged multiply_overflow(Value x, Value y) const;
  /// Quotient and remainder. Truncated: the remainder has the sign of x; floor: that of y. If y is
  /// 0, the quotient is the largest number of the type and the remainder is x.
  std::pair<Integers, Integers> divide(Value x, Value y, Rounding rounding) const;

  Integers bit_and(Value x, Value y) const;
  Integers bit_or(Value x, Value y) const;
  Integers bit_xor(Value x, Value y) const;
  Integers bit_not(const Integers& x) const;
  /// By an amount from 0 on: one for all, or one each, or encrypted (then of any unsigned type).
  /// Shifts by all bits or more leave zeros, or, of a negative number to the right, ones; rotations
  /// are modulo the bits.
  Integers move(Move move, const Integers& x, Value amount) const;

  Integers compare(Comparison how, Value x, Value y) const;  // of type `boolean`
  Integers minimum(Value x, Value y) const;
  Integers maximum(Value x, Value y) const;
  /// x where the flag, of type `boolean`, is 1, else y.
  Integers select(const Integers& flag, Value x, Value y) const;

  /// As unsigned numbers of 8 bits. ilog2 of 0 is 255.
  Integers leading_zeros(const Integers& x) const;
  Integers trailing_zeros(const Integers& x) const;
  Integers ilog2(const Integers& x) const;
  Integers cast(const Integers& x, IntegerType type) const;

  // Of the vector's rows of `length` integers; the result has one for each row.
  /// The sum modulo 2^bits of `type`; the integers are cast to it first.
  Integers sum(const Integers& x, std::size_t length, IntegerType type) const;
  /// sum_i weights[i] x_i, one weight for each integer of a row.
  Integers dot(const Integers& x, std::span<const Wide> weights, IntegerType type) const;
  Integers sort(const Integers& x, std::size_t length, bool descending = false) const;
  /// The largest or smallest, and its first index: an unsigned number of as few bits as it needs,
  /// but at least 2, because 1 bit is a truth value.
  std::pair<Integers, Integers> extreme(const Integers& x, std::size_t length, bool largest) const;

  /// table[index], 0 if there is none. The index is unsigned.
  Integers read(std::span<const Wide> table, IntegerType type, const Integers& index) const;
  Integers read(const Integers& table, const Integers& index) const;

  /// Clear numbers as an encryption that hides nothing.
  Integers trivial(std::span<const Wide> values, IntegerType type) const;
  /// The integers with these indices.
  Integers take(const Integers& x, std::span<const std::size_t> indices) const;

  /// What an operation on so many integers runs, for reports and tests.
  struct Cost {
    std::size_t look_ups = 0, depth = 0;
  };
  /// Calls `operation`, and tells the circuits' look-ups for one lane and the depth, summed over
  /// all that it ran.
  Cost cost_of(const std::function<void(const Arithmetic&)>& operation) const;

 private:
  using Words = std::vector<Word>;
  using Build = std::function<Words(Builder&, const Words&, std::size_t candidate)>;
  struct Plan;
  /// What a circuit is given: `length` integers a lane. A clear one has this type.
  struct Input {
    Value value;
    IntegerType type;
    std::size_t length = 1;
  };

  std::shared_ptr<const Plan> plan(std::string key, std::span<const Input> inputs,
                                   std::size_t candidates, const Build& build) const;
  std::vector<Integers> run(std::string key, std::span<const Input> inputs, std::size_t candidates,
                            const Build& build) const;
  Integers run_one(std::string key, std::initializer_list<Input> inputs, std::size_t candidates,
                   const std::function<Word(Builder&, const Words&, std::size_t)>& build) const;
  Flagged run_two(std::string key, std::initializer_list<Input> inputs, std::size_t candidates,
                  const Build& build) const;
  IntegerType common_type(const Value& x, const Value& y) const;
  /// Digits [offset, offset + digits of `type`) of chosen groups of `stride` digits.
  Integers gathered(const Rows& rows, double noise, IntegerType type, std::size_t stride,
                    std::size_t offset, std::span<const std::size_t> indices) const;
  std::pair<Integers, Integers> divide_signed(const Integers& x, const Clear& divisor,
                                              Rounding rounding) const;
  std::pair<Integers, Integers> divide_each(const Integers& x,
                                            std::span<const Wide> divisors) const;
  Integers moved_each(Move move, const Integers& x, std::span<const Wide> amounts) const;
  Integers after(const Integers& x, const Integers& y) const;
  std::size_t rows_of(const Integers& x, std::size_t length) const;

  std::shared_ptr<const Machine> machine_;
  Space space_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Plan>> plans_;
  mutable Cost* cost_ = nullptr;  // of the copy that cost_of hands out
};

}  // namespace jali::integers
