#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

std::pair<Integers, Integers> Arithmetic::divide(Value x, Value y, Rounding rounding) const {
  const IntegerType type = common_type(x, y);
  if (x.clear() && !x.clear()->scalar) {
    check_values(x.clear()->values, type);
    return divide(trivial(x.clear()->values, type), y, rounding);
  }
  const std::string key = rounding == Rounding::floor ? "divide floor" : "divide truncate";
  const Clear* divisor = y.clear();
  if (divisor && divisor->scalar && !type.is_signed && divisor->values[0] > 0) {
    check_values(divisor->values, type);
    const Wide by = divisor->values[0];
    return run_two("divide constant", {{x, type}, {y, type}}, 2,
                   [&](Builder& b, const Words& w, std::size_t c) -> Words {
                     Quotient out = divide_by_constant(b, w[0], by, {c ? Carries::one_by_one : 0});
                     return {std::move(out.quotient), std::move(out.remainder)};
                   });
  }
  if (divisor && type.is_signed && !divisor->scalar) {
    check_values(divisor->values, type);
    return divide(x, trivial(divisor->values, type), rounding);
  }
  // The multiples of clear divisors are clear.
  const int m = space_.message_bits;
  const IntegerType wide{(type.digits(m) + 1) * m, false};
  std::vector<Clear> multiples;
  std::vector<Input> inputs{{x, type}, {y, type}};
  if (divisor) {
    check_values(divisor->values, type);
    for (int k = 1; k < 1 << m; ++k) {
      Clear multiple = *divisor;
      for (Wide& value : multiple.values) value = k * (value < 0 ? -value : value);
      multiples.push_back(std::move(multiple));
    }
    for (const Clear& multiple : multiples) inputs.push_back({multiple, wide});
  }
  std::vector<Integers> out =
      run(key, inputs, 2, [&](Builder& b, const Words& w, std::size_t c) -> Words {
        const Division how{c == 1, {c ? Carries::one_by_one : 0}};
        Quotient quotient = integers::divide(b, w[0], w[1], std::span(w).subspan(2), rounding, how);
        return {std::move(quotient.quotient), std::move(quotient.remainder)};
      });
  return {std::move(out[0]), std::move(out[1])};
}

}  // namespace jali::integers
