// The abstract machine on which integers are computed: digits that can be added, scaled and looked
// up.
//
// A digit is an encrypted number in [0, 2^p), where p = message_bits + carry_bits. An integer keeps
// numbers below 2^message_bits in its digits; the carry bits are room for sums. A look-up replaces
// a digit x by T(x), for any table T of 2^p numbers in [0, 2^p), and makes its noise fresh.
// Everything between two look-ups is linear. A digit may also be looked up in [0, 2^(p + 1)), if
// the machine is negacyclic: x + 2^p then gives minus what x gives.
//
// Noise is counted in variances of a fresh digit: a look-up and an encryption leave at most 1, and
// the sum of w_i x_i of digits with independent noise n_i has sum w_i^2 n_i. What enters a look-up
// may have at most Space::noise_budget.
//
// This room knows no scheme. A scheme whose ciphertext is one digit implements the operations on
// rows, and so runs every circuit; one whose ciphertext is many digits overrides run() and what
// follows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace jali::integers {

class Circuit;

/// What a machine can hold and what its work costs.
struct Space {
  int message_bits = 0;  // m, in [1, 4]
  int carry_bits = 0;  // c, in [m, 8 - m]: two digits can be packed as x 2^m + y
  double noise_budget = 0;  // at least 2^(2m) + 1, so that two fresh digits can be packed
  /// At most 2^max_log_many results of one look-up. If x < 2^(p - v), then the tables of 2^v
  /// results lie side by side in one table of 2^p numbers, and cost neither noise nor time. A
  /// machine that cannot do so has 0.
  int max_log_many = 0;
  /// Look-ups of numbers up to 2^(p + 1) - 1: see RowLookUps.
  bool negacyclic = false;
  /// So many look-ups take as long as one; more take time in proportion.
  std::size_t wave = 1;

  int bits() const { return message_bits + carry_bits; }
  int size() const { return 1 << bits(); }
  friend bool operator==(const Space&, const Space&) = default;
};

/// The space itself, if integers can be computed in it; else throws InvalidArgument and says what
/// is wrong.
Space validated(Space space);

/// Digits in a machine's memory.
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  virtual ~Rows() = default;
  virtual std::size_t count() const = 0;
};

/// A sparse matrix by rows: row r has the entries [begin[r], begin[r + 1]). A column is a row of
/// the input. The constant is in halves of a digit's unit.
struct RowCombination {
  std::span<const std::uint32_t> begin;  // rows + 1 of them
  std::span<const std::uint32_t> column;
  std::span<const std::int64_t> weight;
  std::span<const std::int64_t> constant;  // one for each row
};

/// Look-ups of one wave. A table has 2^p entries t in halves of a unit, and goes on with t(e + 2^p)
/// = -t(e). Result j of a digit x is t(x + j stride) / 2. Results follow each other, those of one
/// digit first.
struct RowLookUps {
  /// Digits that follow each other in the input. There are two kinds of groups.
  /// - stride >= 2, results * stride <= 2^p: x is below the stride, and the tables of the functions
  ///   lie side by side.
  /// - stride = 1, on negacyclic machines: x is below 2^(p + 1) - results + 1.
  struct Group {
    std::size_t count = 0;
    int results = 1;
    int stride = 0;
  };
  std::span<const Group> groups;
  std::span<const std::int16_t> tables;  // 2^p entries each
  std::span<const std::uint32_t> of_input;  // for each digit which table it takes
};

/// What a circuit is run on. Integers lie one after the other, the digits of one integer together,
/// the lowest first.
struct Operand {
  const Rows* rows = nullptr;
  bool broadcast = false;  // one integer, which all lanes take
};
struct Run {
  std::span<const Operand> operands;
  /// Of each lane, one after the other, the circuit's clear digits.
  std::span<const std::uint8_t> clear;
  std::size_t lanes = 0;
};

/// A machine. All methods may be called from several threads at once on disjoint outputs. An output
/// never overlaps an input.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  virtual const Space& space() const = 0;
  /// So many rows an operation may take for its work now. A circuit takes its lanes in parts that
  /// fit.
  virtual std::size_t available_rows() const = 0;
  /// So many rows can be allocated at all. What has a larger result is refused before it begins.
  virtual std::size_t most_rows() const { return ~std::size_t{0}; }
  virtual std::unique_ptr<Rows> allocate(std::size_t count) const = 0;
  virtual void copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
                    std::size_t count) const = 0;
  /// Row out_first + r of out = sum of weight * row of in + constant.
  virtual void combine(Rows& out, std::size_t out_first, const Rows& in,
                       const RowCombination& combination) const = 0;
  /// Looks up the first rows of in. Results go to out, from row out_first on.
  virtual void look_up(Rows& out, std::size_t out_first, const Rows& in,
                       const RowLookUps& look_ups) const = 0;

  /// The outputs of the circuit for each lane, one lane after the other. By rows, wave after wave,
  /// unless overridden.
  virtual std::unique_ptr<Rows> run(const Circuit& circuit, const Run& run) const;
  /// Row i of the result is row which[i] of in, or the number 0 if which[i] is `none`.
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  virtual std::unique_ptr<Rows> gather(const Rows& in, std::span<const std::uint32_t> which) const;
  /// The rows of a, then those of b.
  virtual std::unique_ptr<Rows> concatenate(const Rows& a, const Rows& b) const;
  /// Rows that hide nothing, of these numbers of halves.
  virtual std::unique_ptr<Rows> constants(std::span<const std::int64_t> halves) const;
};

}  // namespace jali::integers
