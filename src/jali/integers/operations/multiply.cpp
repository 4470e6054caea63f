#include <utility>

#include "jali/integers/arithmetic.h"
#include "jali/integers/columns.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

Integers Arithmetic::multiply(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  if (!x.encrypted()) std::swap(x, y);
  const bool scalar = y.clear() && y.clear()->scalar;
  if (scalar) {
    const Wide weight = y.clear()->values[0];
    return run_one("scale", {{x, type}, {y, type}}, ways,
                   [&](Builder& b, const Words& w, std::size_t c) {
                     Columns columns(w[0].size());
                     Wide constants = 0;
                     // The sign that has fewer digits that are not 0.
                     Wide other = weight - (Wide{1} << type.bits);
                     const auto digits = [&](Wide v) {
                       int count = 0;
                       for (Wide u = v < 0 ? -v : v; u > 0; u >>= b.m()) {
                         count += (u & ((1 << b.m()) - 1)) != 0;
                       }
                       return count;
                     };
                     if (weight < 0) other = weight + (Wide{1} << type.bits);
                     const Wide best = digits(other) < digits(weight) ? other : weight;
                     add_scaled(b, columns, w[0], best, type, constants);
                     const Word rest = constant(constants, type, b);
                     for (std::size_t k = 0; k < rest.size(); ++k) columns[k].push_back(rest[k]);
                     return sum_of_columns(b, std::move(columns), type, carries_of[c]);
                   });
  }
  const bool squares = !y.clear() && space_.message_bits >= 2 && space_.max_log_many >= 1;
  return run_one("multiply", {{x, type}, {y, type}}, squares ? 3 : 2,
                 [](Builder& b, const Words& w, std::size_t c) {
                   if (c == 2) return multiply_by_squares(b, w[0], w[1], w[0].type);
                   const Carries how{c ? Carries::one_by_one : 0};
                   return integers::multiply(b, w[0], w[1], w[0].type, how);
                 });
}

Arithmetic::Flagged Arithmetic::multiply_overflow(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  // The signs of clear vectors would be looked up; an encryption that hides nothing does as well.
  if (x.clear() && !x.clear()->scalar) {
    check_values(x.clear()->values, type);
    return multiply_overflow(trivial(x.clear()->values, type), y);
  }
  if (y.clear() && !y.clear()->scalar) {
    check_values(y.clear()->values, type);
    return multiply_overflow(x, trivial(y.clear()->values, type));
  }
  return run_two(
      "multiply overflow", {{x, type}, {y, type}}, 2,
      [](Builder& b, const Words& w, std::size_t c) -> Words {
        const Carries how{c ? Carries::one_by_one : 0};
        const IntegerType size{w[0].type.bits, false};
        Word u = w[0], v = w[1];
        Form differ;
        if (w[0].type.is_signed) {
          const Form s = sign_of(b, w[0]), t = sign_of(b, w[1]);
          u = {size, negate_if(b, w[0], s, how).digits, {}};
          v = {size, negate_if(b, w[1], t, how).digits, {}};
          differ = b.look_up_two(s, t, [](int f, int g) { return f != g ? 1 : 0; });
        }
        std::vector<Form> lost;
        const Word product = integers::multiply(b, u, v, size, how, &lost);
        const Form beyond = product_overflows(b, u, v, lost);
        if (!w[0].type.is_signed) return {product, bit(beyond)};
        // -2^(bits-1) is a number of the type, and 2^(bits-1) is none.
        std::vector<Form> rest;
        const std::size_t top = product.size() - 1;
        const int half = radix(product, top, b) / 2;
        for (std::size_t i = 0; i < top; ++i) {
          rest.push_back(b.look_up(product[i], [](int d) { return d != 0 ? 1 : 0; }));
        }
        rest.push_back(b.look_up(product[top], [half](int d) { return d % half != 0 ? 1 : 0; }));
        const Form exact =
            b.look_up_two(none(b, std::move(rest)), differ, [](int z, int d) { return z & d; });
        const Form above =
            b.look_up_two(sign_of(b, product), exact, [](int s, int e) { return s & (1 - e); });
        const Form flag = b.look_up_two(above, beyond, [](int f, int g) { return f | g; });
        return {{w[0].type, negate_if(b, product, differ, how).digits, {}}, bit(flag)};
      });
}

}  // namespace jali::integers
