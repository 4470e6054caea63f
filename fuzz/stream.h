// An input as a list of choices.
#pragma once

#include <algorithm>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>

#include "jali/random/prng.h"

namespace jali::fuzz {

/// The bytes of an input, one after the other; zeros behind its end.
class Stream {
 public:
  explicit Stream(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }

  template <class T>
  T read() {
    T x{};
    const std::size_t count = std::min(sizeof(T), rest_.size());
    std::memcpy(&x, rest_.data(), count);
    rest_ = rest_.subspan(count);
    return x;
  }
  std::uint8_t byte() { return read<std::uint8_t>(); }
  std::size_t below(std::size_t n) { return byte() % n; }
  bool once_in(std::size_t n) { return below(n) == n - 1; }

  /// Any double, most often one at which something changes.
  double number() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNumbers[] = {
        0,       -0.0,      1,          -1,
        0.5,     0.75,      2,          -3,
        16,      17,        1e-3,       0x1p-20,
        0x1p20,  0x1p40,    0x1p-40,    0x1.8p52,
        0x1p62,  -0x1p63,   0x1p64,     0x1p120,
        0x1p-64, 1e-300,    5e-324,     1e300,
        1.7e308, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
    const std::size_t k = byte();
    if (k >= 240) return std::bit_cast<double>(read<std::uint64_t>());
    if (k >= 128) return kNumbers[k % std::size(kNumbers)];
    return (static_cast<double>(k) - 64) / 64;
  }
  std::complex<double> complex() {
    const double re = number();
    return {re, once_in(3) ? number() : 0};
  }
  int integer() {
    constexpr int kIntegers[] = {0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 4,
                                 5,
                                 16,
                                 -16,
                                 256,
                                 511,
                                 512,
                                 513,
                                 1 << 20,
                                 -512,
                                 1023,
                                 1024,
                                 2047,
                                 65535,
                                 std::numeric_limits<int>::max(),
                                 std::numeric_limits<int>::min()};
    const std::size_t k = byte();
    return k >= 248 ? read<std::int32_t>() : kIntegers[k % std::size(kIntegers)];
  }
  random::Seed seed() {
    random::Seed out{};
    out[0] = byte();
    return out;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace jali::fuzz
