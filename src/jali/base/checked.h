// Integer arithmetic that throws instead of wrapping: for every size and count that comes from
// outside. E is the error thrown, a jali::Error that takes a message.
#pragma once

#include <concepts>
#include <utility>

#include "jali/base/error.h"

namespace jali {

template <class E = InvalidArgument, std::unsigned_integral T>
constexpr T checked_add(T a, T b) {
  T out{};
  require<E>(!__builtin_add_overflow(a, b, &out), "a size is too large: the sum overflows");
  return out;
}

template <class E = InvalidArgument, std::unsigned_integral T>
constexpr T checked_mul(T a, T b) {
  T out{};
  require<E>(!__builtin_mul_overflow(a, b, &out), "a size is too large: the product overflows");
  return out;
}

/// The same number in another integer type.
template <std::integral To, class E = InvalidArgument, std::integral From>
constexpr To checked_cast(From x) {
  require<E>(std::in_range<To>(x), "a number is out of the range of its type");
  return static_cast<To>(x);
}

}  // namespace jali
