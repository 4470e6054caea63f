// From which errors the error of a ciphertext is made, so that its noise is known exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace jali::tfhe {

/// A sparse matrix of small integers by rows, as backend::LweCombination has it.
struct Weights {
  std::span<const std::uint32_t> begin;  // rows + 1 of them
  std::span<const std::uint32_t> column;
  std::span<const std::int64_t> weight;
  /// One for each row, in half steps, or none. Constants have no error, but ciphertexts that differ in them are bootstrapped
  /// to results with different errors.
  std::span<const std::int64_t> half_steps{};
};

/// Every ciphertext of a block is an integer combination of ciphertexts that an encryption, a bootstrapping or a reading
/// from bytes has made. Errors of different ones of these are taken to be independent; equal ones add up before they are
/// squared: the squared norm of 2 x is 4, that of x + y is 2.
///
/// The unit of squared norms is that of a freshly bootstrapped ciphertext. Fresh encryptions have less noise, and count
/// the same.
///
/// Two things look independent here and are not: the same bootstrapping of the same ciphertext in two calls, and a
/// ciphertext that was read from bytes twice.
class History {
 public:
  History() = default;
  /// Rows without noise: ciphertexts that anybody can read, of these constants.
  static History clear(std::span<const std::int64_t> half_steps);
  /// New ciphertexts of squared norm norm2. Row i is the new ciphertext same[i]; equal numbers stand for equal ciphertexts.
  static History fresh(std::span<const std::uint32_t> same, double norm2 = 1);
  static History fresh(std::size_t rows, double norm2 = 1);

  std::size_t rows() const { return begin_.size() - 1; }
  /// The squared norm of one row, and the largest of all.
  double norm2(std::size_t row) const;
  double norm2() const;

  static History joined(std::span<const History* const> parts);
  /// Row r is the sum of weight * row(column). Throws LimitExceeded if a row would be made of more than kMostTerms.
  History combined(const Weights& weights) const;
  static constexpr std::size_t kMostTerms = std::size_t{1} << 16;
  /// Whether every row is a multiple of one ciphertext, and no two of the same one: then their errors are independent, and no
  /// bootstrapping of one is that of another.
  bool independent() const;
  /// What was computed from `recorded`, which are fresh, happens again with `given` in their place. Ciphertexts that it made
  /// on the way are new ones, which the results may share.
  static std::vector<History> repeated(std::span<const History* const> results,
                                       std::span<const History* const> recorded,
                                       std::span<const History* const> given);
  /// For each row the first row that is the same ciphertext: the same combination with the same constant, and the same
  /// entry of `mark`, if there is one for each row.
  std::vector<std::uint32_t> first_equal(std::span<const std::uint32_t> mark = {}) const;

 private:
  struct Term {
    std::uint32_t source;  // into sources_
    std::uint32_t row;
    std::int64_t weight;  // not 0
    auto operator<=>(const Term&) const = default;
  };
  /// What was made at once. Two sources are the same if they are the same object.
  struct Source {
    double norm2 = 1;
  };
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
