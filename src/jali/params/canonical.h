// The canonical bytes of parameters, whose SHA-256 is their fingerprint.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "jali/base/hash.h"

namespace jali::params {

/// Every number takes 8 bytes, the least significant first, and a vector is preceded by its length.
class Canonical {
 public:
  void put(std::uint64_t x) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::uint8_t>(x >> (8 * i)));
  }
  void put(double x) { put(std::bit_cast<std::uint64_t>(x)); }
  template <class T>
  void put(const std::vector<T>& v) {
    put(static_cast<std::uint64_t>(v.size()));
    for (const T& x : v) put(static_cast<std::uint64_t>(x));
  }
  Digest digest() const { return hash256(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace jali::params
