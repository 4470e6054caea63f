// Sums of many digits a place, and products.
#pragma once

#include <vector>

#include "jali/integers/carries.h"

namespace jali::integers {

/// Digits to be summed: place i has weight 2^(m i). Every form is from 0 on.
using Columns = std::vector<std::vector<Form>>;

/// The sum modulo 2^bits of the type. Sums that fill a digit are split in low digit and carry, in
/// rounds, until two digits a place are left; or, if carries go one by one, column after column.
/// wide_rounds: in so many rounds sums may have p + 1 bits. This takes fewer look-ups, and two
/// waves a round. lost: every carry out of the highest place is appended, if it is not null.
Word sum_of_columns(Builder& b, Columns columns, IntegerType type, Carries how,
                    std::vector<Form>* lost = nullptr, int wide_rounds = 0);

/// The low and high digits of the products of digits that a product modulo 2^bits has. lost: those
/// of the next place.
Columns products(Builder& b, const Word& x, const Word& y, IntegerType type,
                 std::vector<Form>* lost = nullptr);
/// x y modulo 2^bits of the type. Two look-ups for a product of digits, its low and high digit.
Word multiply(Builder& b, const Word& x, const Word& y, IntegerType type, Carries how,
              std::vector<Form>* lost = nullptr, int wide_rounds = 0);
/// The same with one look-up for a product. See docs/math/integers.md. Needs m >= 2 and two results
/// of one look-up, and encrypted factors.
Word multiply_by_squares(Builder& b, const Word& x, const Word& y, IntegerType type, Carries how,
                         int wide_rounds);
/// Whether x y is at least 2^bits of the type, all unsigned; lost: what multiply lost.
Form product_overflows(Builder& b, const Word& x, const Word& y, const std::vector<Form>& lost);

/// A number that is scaled by a clear weight, as the rows of a sum. If the weight is negative, then
/// -w x = w (2^bits - 1 - x) + w modulo 2^bits.
void add_scaled(Builder& b, Columns& columns, const Word& x, Wide weight, IntegerType type,
                Wide& constants);

}  // namespace jali::integers
