#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/columns.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

Integers Arithmetic::dot(const Integers& x, std::span<const Wide> weights, IntegerType type) const {
  check_type(x.type());
  check_type(type);
  const std::size_t length = weights.size();
  rows_of(x, length);
  const Wide bound = Wide{1} << type.bits;
  for (const Wide weight : weights) {
    require<InvalidArgument>(weight > -bound && weight < bound, [&] {
      return "the weight " + text(weight) + " has more bits than the sum: give a wider type";
    });
  }
  std::string key = "dot";
  append(key, type);
  append(key, weights.data(), weights.size_bytes());
  return run_one(key, {{x, x.type(), length}}, 2, [&](Builder& b, const Words& w, std::size_t c) {
    Columns columns(static_cast<std::size_t>(type.digits(b.m())));
    Wide constants = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const Word one = part(w[0], i, x.type(), b.m());
      add_scaled(b, columns, integers::cast(b, one, type), weights[i], type, constants);
    }
    const Word rest = constant(constants, type, b);
    for (std::size_t k = 0; k < rest.size(); ++k) columns[k].push_back(rest[k]);
    return sum_of_columns(b, std::move(columns), type, {c ? Carries::one_by_one : 0});
  });
}

Integers Arithmetic::sum(const Integers& x, std::size_t length, IntegerType type) const {
  rows_of(x, length);
  const std::vector<Wide> ones(length, 1);
  return dot(x, ones, type);
}

}  // namespace jali::integers
