// Comparisons, choices, and what moves and counts bits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "jali/integers/carries.h"

namespace jali::integers {

/// 1 if all flags, 0 or 1 each, are 0; else 0.
Form none(Builder& b, std::vector<Form> flags);
/// Entry s is 1 if a flag from s on is 1. There is one more entry, 0, after the last.
std::vector<Form> any_from(Builder& b, std::span<const Form> flags);
Form is_equal(Builder& b, const Word& x, const Word& y);
/// x < y, or x <= y if `or_equal`. One of the two may be clear; digits are then compared in pairs.
Form is_less(Builder& b, const Word& x, const Word& y, bool or_equal);
/// 1 if a signed word is negative.
Form sign_of(Builder& b, const Word& x);

/// x if `flag` is 1, y if it is 0. Digits have the noise of y and one more, unless this is more
/// than a quarter of the budget: then they are refreshed. largest: of each digit of the result,
/// where this is less than x and y tell.
Word select(Builder& b, const Form& flag, const Word& x, const Word& y,
            std::span<const int> largest = {});
Word bitwise(Builder& b, const Word& x, const Word& y, const std::function<int(int, int)>& f);

/// Bit i of the result is bit from[i] of x, or 0 if from[i] < 0.
Word moved(Builder& b, const Word& x, IntegerType type, std::span<const int> from);
enum class Move { left, right, rotate_left, rotate_right };
/// Where the bits of a shift or rotation come from. A signed number shifted right takes its sign
/// from the left.
std::vector<int> bits_from(IntegerType type, Move move, int amount);
/// The bits of a word, the lowest first.
std::vector<Form> bits_of(Builder& b, const Word& x);
/// The same type with its bits moved, by an amount of these bits. A shift by all bits or more
/// leaves none of them; rotations are modulo the number of bits.
Word moved_by(Builder& b, const Word& x, Move move, std::span<const Form> amount);
/// In another type: truncated, or widened by zeros or by the sign.
Word cast(Builder& b, const Word& x, IntegerType type);

/// Zeros before the highest (or, trailing, after the lowest) bit that is 1; all bits if there is
/// none. `less`: this constant minus the number instead, if it is not negative.
Word zeros(Builder& b, const Word& x, bool trailing, int less, IntegerType type, Carries how);

}  // namespace jali::integers
