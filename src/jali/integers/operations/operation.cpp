#include "jali/integers/operations/operation.h"

#include <utility>

#include "jali/base/error.h"

namespace jali::integers {

std::string text(Wide number) {
  if (number < 0) return std::string("-").append(text(-number));
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
    number /= 10;
  } while (number > 0);
  return digits;
}

std::string name(IntegerType type) {
  return (type.is_signed ? "signed integers of " : "unsigned integers of ") +
         std::to_string(type.bits) + " bits";
}

void check_type(IntegerType type) {
  require<InvalidArgument>(type.bits >= 1 && type.bits <= 64, [&] {
    return "integers have 1 to 64 bits, not " + std::to_string(type.bits);
  });
}

void check_values(std::span<const Wide> values, IntegerType type) {
  for (const Wide value : values) {
    require<InvalidArgument>(value >= 0 || type.is_signed, [&] {
      return "the clear value " + text(value) + " is negative, and the integers are unsigned: " +
             "encrypt them as signed, or give a value from 0 to " + text(type.highest());
    });
    require<InvalidArgument>(value >= type.lowest() && value <= type.highest(), [&] {
      return "the clear value " + text(value) + " is no number of " + name(type) +
             ", which go from " + text(type.lowest()) + " to " + text(type.highest()) +
             ": cast the integers to a wider type first";
    });
  }
}

void append(std::string& key, const void* data, std::size_t bytes) {
  key.append(static_cast<const char*>(data), bytes);
}

void append(std::string& key, IntegerType type) {
  append(key, &type.bits, sizeof type.bits);
  key += type.is_signed ? '-' : '+';
}

Word part(const Word& words, std::size_t i, IntegerType type, int m) {
  const auto n = static_cast<std::size_t>(type.digits(m));
  const auto first = words.digits.begin() + static_cast<std::ptrdiff_t>(i * n);
  return {type, {first, first + static_cast<std::ptrdiff_t>(n)}, {}};
}

Word bit(Form form) { return {boolean, {std::move(form)}, {}}; }

}  // namespace jali::integers
