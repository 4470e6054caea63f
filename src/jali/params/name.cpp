#include "jali/params/name.h"

#include <bit>
#include <cstdint>
#include <cstdio>

namespace jali::params {

bool is_name(std::string_view name) {
  while (!name.empty()) {
    const auto first = static_cast<std::uint8_t>(name[0]);
    // Leading ones of the first byte: 0 for ASCII, else the bytes of the character.
    const auto ones = static_cast<std::size_t>(std::countl_one(first));
    if (ones == 1 || ones > 4) return false;
    const std::size_t count = ones == 0 ? 1 : ones;
    if (count > name.size()) return false;
    std::uint32_t code = first & (0x7fu >> ones);
    for (std::size_t i = 1; i < count; ++i) {
      const auto next = static_cast<std::uint8_t>(name[i]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3fu);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800,
                                        0x10000};  // shorter ones are not canonical
    if (code < kLeast[count] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    name.remove_prefix(count);
  }
  return true;
}

std::string number(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", x);
  return buffer;
}

}  // namespace jali::params
