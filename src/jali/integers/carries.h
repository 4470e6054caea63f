// Carries: sums of two digits a place, brought back to digits.
//
// At a place of radix q let s be the sum of two digits. Its state t is 0 if no carry leaves it (s <
// q - 1), 1 if it passes on the carry that enters (s = q - 1), and 2 if a carry leaves it anyhow (s
// >= q). A chain of places is a sum of weighted states, and one look-up composes as many as the
// space holds: see Chain. docs/math/integers.md has the mathematics.
#pragma once

#include <span>
#include <vector>

#include "jali/integers/word.h"

namespace jali::integers {

/// How carries are found: by a tree of states (least depth), one after the other (fewest look-ups),
/// or by a tree over blocks, and one after the other inside each.
struct Carries {
  std::size_t block = 0;  // digits of a block; 0: tree
  static constexpr std::size_t one_by_one = ~std::size_t{0};
};

struct Sum {
  std::vector<Form> digits;  // of a look-up each
  Form carry;  // 0 or 1, out of the highest digit
};

/// sum_i s_i 2^(m i) + carry, where digit i has radix[i] and 0 <= s_i <= 2 radix[i] - 2. carry: 0
/// or 1.
Sum resolve_carries(Builder& b, std::span<const Form> sums, std::span<const int> radix,
                    const Form& carry, Carries how);
/// The carry out of a chain of states. first: whether a carry leaves the place before them.
Form carry_of_states(Builder& b, std::span<const Form> states, const Form& first);
/// The state of a sum.
Form state_of_sum(Builder& b, const Form& sum, int radix);

/// a + b + carry and a - b - borrow, modulo 2^bits. The carry of a difference is 1 if it does not
/// borrow.
Sum add(Builder& b, const Word& x, const Word& y, Carries how, const Form& carry = 0);
Sum subtract(Builder& b, const Word& x, const Word& y, Carries how, const Form& carry = 1);
/// x if `flag` is 0, and -x if it is 1.
Sum negate_if(Builder& b, const Word& x, const Form& flag, Carries how);

}  // namespace jali::integers
