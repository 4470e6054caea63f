#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {
namespace {

constexpr IntegerType byte{8, false};

}  // namespace

Integers Arithmetic::bit_and(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("and", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return bitwise(b, w[0], w[1], [](int u, int v) { return u & v; });
  });
}

Integers Arithmetic::bit_or(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("or", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return bitwise(b, w[0], w[1], [](int u, int v) { return u | v; });
  });
}

Integers Arithmetic::bit_xor(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("xor", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return bitwise(b, w[0], w[1], [](int u, int v) { return u ^ v; });
  });
}

Integers Arithmetic::bit_not(const Integers& x) const {
  check_type(x.type());
  return run_one("not", {{x, x.type()}}, 1, [](Builder& b, const Words& w, std::size_t) {
    Word out = w[0];
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = -out[i] + (radix(out, i, b) - 1);
    return out;
  });
}

Integers Arithmetic::cast(const Integers& x, IntegerType type) const {
  check_type(x.type());
  check_type(type);
  if (x.type() == type) return x;
  std::string key = "cast";
  append(key, type);
  return run_one(key, {{x, x.type()}}, 1, [type](Builder& b, const Words& w, std::size_t) {
    return integers::cast(b, w[0], type);
  });
}

Integers Arithmetic::leading_zeros(const Integers& x) const {
  check_type(x.type());
  return run_one("leading", {{x, x.type()}}, 2, [](Builder& b, const Words& w, std::size_t c) {
    return zeros(b, w[0], false, -1, byte, {c ? Carries::one_by_one : 0});
  });
}

Integers Arithmetic::trailing_zeros(const Integers& x) const {
  check_type(x.type());
  return run_one("trailing", {{x, x.type()}}, 2, [](Builder& b, const Words& w, std::size_t c) {
    return zeros(b, w[0], true, -1, byte, {c ? Carries::one_by_one : 0});
  });
}

Integers Arithmetic::ilog2(const Integers& x) const {
  check_type(x.type());
  return run_one("ilog2", {{x, x.type()}}, 2, [](Builder& b, const Words& w, std::size_t c) {
    return zeros(b, w[0], false, w[0].type.bits - 1, byte, {c ? Carries::one_by_one : 0});
  });
}

}  // namespace jali::integers
