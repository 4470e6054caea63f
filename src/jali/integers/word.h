// Types of integers, and integers as digits of a circuit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/integers/builder.h"

namespace jali::integers {

/// A clear integer; every value of 64 bits, signed or not, is one.
using Wide = __int128;

/// Numbers modulo 2^bits: from 0 on, or in two's complement.
struct IntegerType {
  int bits = 0;  // in [1, 64]
  bool is_signed = false;
  friend bool operator==(const IntegerType&, const IntegerType&) = default;

  /// The number of digits of m bits. The highest has the bits that are left over.
  int digits(int m) const { return (bits + m - 1) / m; }
  int digit_bits(int digit, int m) const { return digit + 1 < digits(m) ? m : bits - digit * m; }
  Wide lowest() const { return is_signed ? -(Wide{1} << (bits - 1)) : 0; }
  Wide highest() const { return (Wide{1} << (is_signed ? bits - 1 : bits)) - 1; }
};
inline constexpr IntegerType boolean{1, false};

/// The digits of a number modulo 2^bits, the lowest first.
void split(Wide number, IntegerType type, int m, std::span<std::uint8_t> digits);
/// The number of a type that has these digits.
Wide joined(std::span<const std::uint8_t> digits, IntegerType type, int m);

/// An integer in a circuit.
struct Word {
  IntegerType type;
  std::vector<Form> digits;
  /// Of a clear word that is signed: its highest digit with the sign bit turned, by which it is
  /// compared.
  Form turned_top = {};

  std::size_t size() const { return digits.size(); }
  Form& operator[](std::size_t i) { return digits[i]; }
  const Form& operator[](std::size_t i) const { return digits[i]; }
};

/// 2^(bits of the digit).
int radix(const Word& word, std::size_t digit, const Builder& b);
/// A word of constants.
Word constant(Wide number, IntegerType type, const Builder& b);
/// The largest number of each digit.
std::vector<int> largest_digits(IntegerType type, int m);

}  // namespace jali::integers
