#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {
namespace {

/// Whether the sign of a sum differs from two equal signs: s_x + s_y + (1 - s) is 0 or 3. turn: 1
/// if y is subtracted.
Form sign_overflow(Builder& b, const Word& x, const Word& y, const Word& sum, bool turn) {
  const int half = radix(y, y.size() - 1, b) / 2;
  const Form of_y = b.look_up(y.digits.back(), [&](int v) { return (v >= half) != turn; });
  return b.look_up(sign_of(b, x) + of_y - sign_of(b, sum) + 1,
                   [](int v) { return v == 0 || v == 3 ? 1 : 0; });
}

}  // namespace

Integers Arithmetic::add(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("add", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Word {
                   return {w[0].type, integers::add(b, w[0], w[1], carries_of[c]).digits, {}};
                 });
}

Integers Arithmetic::subtract(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("subtract", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Word {
                   return {w[0].type, integers::subtract(b, w[0], w[1], carries_of[c]).digits, {}};
                 });
}

Integers Arithmetic::negate(const Integers& x) const { return subtract(Clear(0), x); }

Arithmetic::Flagged Arithmetic::add_overflow(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_two("add overflow", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Words {
                   Sum sum = integers::add(b, w[0], w[1], carries_of[c]);
                   Word word{w[0].type, std::move(sum.digits), {}};
                   if (!w[0].type.is_signed) return {word, bit(sum.carry)};
                   const Form flag = sign_overflow(b, w[0], w[1], word, false);
                   return {word, bit(flag)};
                 });
}

Arithmetic::Flagged Arithmetic::subtract_overflow(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_two("subtract overflow", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Words {
                   Sum sum = integers::subtract(b, w[0], w[1], carries_of[c]);
                   Word word{w[0].type, std::move(sum.digits), {}};
                   if (!w[0].type.is_signed) return {word, bit(-sum.carry + 1)};
                   const Form flag = sign_overflow(b, w[0], w[1], word, true);
                   return {word, bit(flag)};
                 });
}

}  // namespace jali::integers
