// From which errors the error of a ciphertext is made, so that no bootstrapping gets more noise
// than its parameters allow.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "jali/random/prng.h"
#include "jali/schemes/tfhe/origin.h"

namespace jali::tfhe {

/// A sparse matrix of small integers by rows, as backend::LweCombination has it.
struct Weights {
  std::span<const std::uint32_t> begin;  // rows + 1 of them
  std::span<const std::uint32_t> column;
  std::span<const std::int64_t> weight;
  /// One for each row, in half steps, or none. Constants have no error, but ciphertexts that differ
  /// in them are bootstrapped to results with different errors.
  std::span<const std::int64_t> half_steps{};
};

/// Every ciphertext of a block is an integer combination of ciphertexts that an encryption, a
/// bootstrapping or a reading from bytes has made. Their errors have origins (tfhe/origin.h).
///
/// The squared norm of a row is the sum over ids of (sum of |w|)^2, if the weights w of equal
/// ciphertexts are added before: errors of different ids are independent, and errors of one id may
/// be equal or opposite. So 2 x and x + y have 4 and 2, x - x has 0, and x + y has 4 if x and y are
/// two readings of the same bytes, or the same look-up of the same ciphertext.
///
/// The unit of squared norms is that of a freshly bootstrapped ciphertext. Fresh encryptions have
/// less noise, and count the same.
class History {
 public:
  History() = default;
  /// Rows without noise: ciphertexts that anybody can read, of these constants.
  static History clear(std::span<const std::int64_t> half_steps);
  /// Encryptions whose masks are streams of this seed.
  static History encrypted(const random::Seed& seed, std::size_t rows, double norm2 = 1);
  /// New ciphertexts of these origins.
  static History made(std::vector<Origin> origins);
  /// New ciphertexts whose errors are independent of all others, of squared norm norm2.
  static History fresh(std::size_t rows, double norm2 = 1);
  /// Ciphertexts of which nobody said how they came about. All of them have one id, so that the
  /// errors of any two count as equal.
  static History unknown(std::size_t rows, double norm2);
  /// Whether ids, weights and constants say everything: no ciphertext is unknown, and each has the
  /// squared norm 1.
  bool known() const;

  std::size_t rows() const { return begin_.size() - 1; }
  /// The squared norm of one row, and the largest of all.
  double norm2(std::size_t row) const;
  double norm2() const;
  /// A row as a combination of ciphertexts that are not negated and have no constant.
  struct Combination {
    /// Sum of Origin::times modulo 2^64: equal for rows that differ in their constants alone.
    std::uint64_t id = 0;
    std::int64_t half_steps = 0;
  };
  Combination combination(std::size_t row) const;
  /// Calls f(its origin, its weight, its squared norm) for every ciphertext of which the row is a
  /// sum.
  template <class F>
  void for_each(std::size_t row, const F& f) const {
    for (const Term& term : terms(row)) {
      const Source& source = *sources_[term.source];
      f(source.origin[term.row], term.weight, source.norm2);
    }
  }

  static History joined(std::span<const History* const> parts);
  /// Row r is the sum of weight * row(column). Throws LimitExceeded if a row would be made of more
  /// than kMostTerms.
  History combined(const Weights& weights) const;
  static constexpr std::size_t kMostTerms = std::size_t{1} << 16;
  /// Row i is what a bootstrapping makes of row i. table(i, c): what follows from the table that
  /// row i takes, if its input has the constant c, in half steps. It may be called as long as the
  /// result lives.
  using TableOf = std::function<TableOrigin(std::size_t row, std::int64_t half_steps)>;
  History looked_up(TableOf table) const;
  /// Whether every row is a multiple of one ciphertext, and no two are of one origin: then their
  /// errors are independent, and no bootstrapping of one is that of another.
  bool independent() const;

  // --- recordings: what was computed from examples happens again with other inputs ---
  /// As fresh. What is made of them remembers how, so that it can be repeated.
  static History example(std::size_t rows, double norm2);
  /// Whether an example is among what the rows are made of.
  bool recorded() const;
  /// New ciphertexts, of the origins that remake(inputs) gives. It is called again when a recording
  /// is repeated, and throws if the other inputs cannot be taken.
  using Remake = std::function<std::vector<Origin>(std::span<const History>)>;
  static History derived(std::vector<History> inputs, const Remake& remake);
  /// What was computed from `recorded`, which are examples, happens again with `given` in their
  /// place. Throws InvalidArgument if something would then have more noise than in the recording.
  static std::vector<History> repeated(std::span<const History* const> results,
                                       std::span<const History* const> recorded,
                                       std::span<const History* const> given);

 private:
  struct Term {
    std::uint32_t source;  // into sources_
    std::uint32_t row;
    std::int64_t weight;  // not 0
    auto operator<=>(const Term&) const = default;
  };
  /// What was made at once. Two ciphertexts are the same if they are the same row of the same
  /// object.
  struct Source {
    double norm2 = 1;
    std::vector<Origin> origin;
    bool recorded = false;  // an example, or made of one; then it may have:
    std::vector<History> inputs;
    Remake remake;
  };
  class Repeater;

  static History of(std::shared_ptr<const Source> source);
  /// Whether no two ciphertexts of all sources have one id, so that the squared norm of a row is
  /// the sum of its squared weights. False also if to find that out would take longer than to look
  /// at every row.
  bool distinct() const;
  std::span<const Term> terms(std::size_t row) const {
    return std::span(terms_).subspan(begin_[row], begin_[row + 1] - begin_[row]);
  }
  /// Appends a row of these terms, which it sorts and whose equals it adds.
  void append(std::vector<Term>& terms, std::int64_t half_steps);

  std::vector<std::shared_ptr<const Source>> sources_;
  std::vector<std::size_t> begin_{0};
  std::vector<std::int64_t> half_steps_;  // the constant of each row, modulo 2^64
  std::vector<Term> terms_;  // of each row in ascending order, with different (source, row)
};

}  // namespace jali::tfhe
