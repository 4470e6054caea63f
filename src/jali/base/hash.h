// SHA-256 (FIPS 180-4). It gives parameters their fingerprint, finds accidental corruption, and
// pins formats in tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/base/wipe.h"

namespace jali {

using Digest = std::array<std::uint8_t, 32>;

/// Computes the digest of the concatenation of all updates. Wipes its copy of the input when it is
/// destroyed.
class Hash256 {
 public:
  Hash256() = default;
  ~Hash256() { wipe(block_.data(), block_.size()); }
  Hash256(const Hash256&) = default;
  Hash256& operator=(const Hash256&) = default;

  void update(std::span<const std::uint8_t> data);
  /// The digest of what was given so far. More updates may follow.
  Digest digest() const;

  /// FIPS 180-4, 5.3.3: square roots of the first eight primes.
  static constexpr std::array<std::uint32_t, 8> kInitial{0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                                         0xa54ff53a, 0x510e527f, 0x9b05688c,
                                                         0x1f83d9ab, 0x5be0cd19};

 private:
  std::array<std::uint32_t, 8> state_ = kInitial;
  std::array<std::uint8_t, 64> block_{};
  std::uint64_t bytes_ = 0;
};

Digest hash256(std::span<const std::uint8_t> data);

namespace detail {
/// hash256 without the processor's SHA instructions, for tests.
Digest hash256_portable(std::span<const std::uint8_t> data);
}  // namespace detail

}  // namespace jali
