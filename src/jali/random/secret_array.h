// Working memory of the samplers: an array that is wiped when it is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/random/prng.h"

namespace jali::random {

template <class T, std::size_t N>
struct SecretArray {
  alignas(64) T values[N];

  SecretArray() = default;
  SecretArray(const SecretArray&) = delete;
  SecretArray& operator=(const SecretArray&) = delete;
  ~SecretArray() { wipe(values, sizeof(values)); }

  T& operator[](std::size_t i) { return values[i]; }
  /// Fills the first `count` values with the next bytes of the stream.
  void fill(Prng& prng, std::size_t count) {
    prng.fill({reinterpret_cast<std::uint8_t*>(values), count * sizeof(T)});
  }
};

}  // namespace jali::random
