// Bytes as published vectors write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace jali::test {

inline std::string hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t b : bytes) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

}  // namespace jali::test
