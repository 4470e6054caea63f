#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

Integers Arithmetic::compare(Comparison how, Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  std::string key = "compare";
  key += static_cast<char>('0' + static_cast<int>(how));
  return run_one(key, {{x, type}, {y, type}}, 1, [how](Builder& b, const Words& w, std::size_t) {
    switch (how) {
      case Comparison::equal: return bit(is_equal(b, w[0], w[1]));
      case Comparison::not_equal: return bit(-is_equal(b, w[0], w[1]) + 1);
      case Comparison::less: return bit(is_less(b, w[0], w[1], false));
      case Comparison::less_equal: return bit(is_less(b, w[0], w[1], true));
      case Comparison::greater: return bit(is_less(b, w[1], w[0], false));
      case Comparison::greater_equal: break;
    }
    return bit(is_less(b, w[1], w[0], true));
  });
}

Integers Arithmetic::minimum(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("minimum", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return integers::select(b, is_less(b, w[0], w[1], true), w[0], w[1]);
  });
}

Integers Arithmetic::maximum(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("maximum", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return integers::select(b, is_less(b, w[0], w[1], true), w[1], w[0]);
  });
}

Integers Arithmetic::select(const Integers& flag, Value x, Value y) const {
  require<InvalidArgument>(flag.type() == boolean, [&] {
    return "a choice needs a flag of one bit, not " + name(flag.type()) +
           ": compare them with a number first";
  });
  const IntegerType type = common_type(x, y);
  return run_one("select", {{flag, boolean}, {x, type}, {y, type}}, 1,
                 [](Builder& b, const Words& w, std::size_t) {
                   return integers::select(b, w[0][0], w[1], w[2]);
                 });
}

}  // namespace jali::integers
