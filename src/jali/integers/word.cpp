#include "jali/integers/word.h"

#include <algorithm>

namespace jali::integers {

void split(Wide number, IntegerType type, int m, std::span<std::uint8_t> digits) {
  const int count = type.digits(m);
  for (int i = 0; i < count; ++i) {
    const int mask = (1 << type.digit_bits(i, m)) - 1;
    // A type inside a circuit may have more bits than a Wide.
    const int shift = std::min(i * m, 127);
    digits[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((number >> shift) & mask);
  }
}

Wide joined(std::span<const std::uint8_t> digits, IntegerType type, int m) {
  Wide number = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    number |= Wide{digits[i]} << (static_cast<int>(i) * m);
  }
  return number > type.highest() ? number - (Wide{1} << type.bits) : number;
}

int radix(const Word& word, std::size_t digit, const Builder& b) {
  return 1 << word.type.digit_bits(static_cast<int>(digit), b.m());
}

Word constant(Wide number, IntegerType type, const Builder& b) {
  std::vector<std::uint8_t> digits(static_cast<std::size_t>(type.digits(b.m())));
  split(number, type, b.m(), digits);
  Word out{type, {digits.begin(), digits.end()}, {}};
  const int half = radix(out, out.size() - 1, b) / 2;
  out.turned_top = Form(out.digits.back().constant ^ half);
  return out;
}

std::vector<int> largest_digits(IntegerType type, int m) {
  std::vector<int> out;
  for (int i = 0; i < type.digits(m); ++i) out.push_back((1 << type.digit_bits(i, m)) - 1);
  return out;
}

}  // namespace jali::integers
