// Natural numbers of any size, for the oracle: little-endian vectors of 64-bit words and the
// schoolbook operations that composing and dividing residues needs. Nothing is fast here.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jali::backend::ref {

class Natural {
 public:
  Natural(std::uint64_t value = 0);  // NOLINT: a small number is a number
  static Natural from_words(std::span<const std::uint64_t> words);

  std::size_t words() const { return words_.size(); }  // without leading zeros; 0 for zero
  std::size_t bits() const;
  std::uint64_t word(std::size_t i) const { return i < words_.size() ? words_[i] : 0; }

  Natural& operator+=(const Natural& b);
  Natural& operator-=(const Natural& b);  // throws InternalError if b is greater
  Natural& operator*=(std::uint64_t b);
  /// *this = floor(*this / d); returns the remainder. d is not 0.
  std::uint64_t divide(std::uint64_t d);
  std::uint64_t operator%(std::uint64_t d) const;

  friend Natural operator+(Natural a, const Natural& b) { return a += b; }
  friend Natural operator-(Natural a, const Natural& b) { return a -= b; }
  friend Natural operator*(Natural a, std::uint64_t b) { return a *= b; }
  friend bool operator==(const Natural&, const Natural&) = default;
  std::strong_ordering operator<=>(const Natural& b) const;

 private:
  void trim();
  std::vector<std::uint64_t> words_;  // the last is not 0
};

}  // namespace jali::backend::ref
