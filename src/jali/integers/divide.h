// Division.
#pragma once

#include "jali/integers/bits.h"

namespace jali::integers {

enum class Rounding { truncate, floor };

struct Quotient {
  Word quotient, remainder;
};
/// How a digit of the quotient is found: all its values at once, or bit by bit.
struct Division {
  bool bit_by_bit = false;
  Carries carries;
};

/// x / y and the remainder. multiples: y, 2 y, .., (2^m - 1) y, with one more digit than y, if y is
/// clear; else empty. If y is 0, the quotient is the largest number of the type, and the remainder
/// is x. The lowest number divided by -1 is itself.
Quotient divide(Builder& b, const Word& x, const Word& y, std::span<const Word> multiples,
                Rounding rounding, Division how);
/// A signed divisor: whether it is negative, whether it is 0, and its magnitude.
struct Divisor {
  Form negative, zero;
  Word size;
};
/// Quotient and remainder of signed numbers from those of their magnitudes, which are unsigned
/// numbers of as many bits.
Quotient with_signs(Builder& b, const Quotient& sizes, const Form& x_negative, const Divisor& y,
                    Rounding rounding, Carries how);
/// The same as divide of unsigned numbers and a constant divisor that is not 0.
Quotient divide_by_constant(Builder& b, const Word& x, Wide divisor, Carries how);

}  // namespace jali::integers
