#include "jali/base/key_id.h"

namespace jali {

std::string to_string(const KeyId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  if (id.is_none()) return out;
  for (const std::uint8_t byte : id.bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace jali
