// Chooses the digits of key switching and the special primes, whose product is P.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jali/params/prime_pool.h"

namespace jali::params {

struct Gadget {
  std::vector<std::size_t> digit_begin;  // dnum + 1 positions in the q primes
  std::vector<std::uint64_t> p;
  /// The variance that key switching adds at the top level, divided by that of a rescale's rounding
  /// (NoiseModel).
  double noise_ratio = 0;

  std::size_t dnum() const { return digit_begin.size() - 1; }
};

/// If key switching adds at most so many times a rescale's variance, no special prime and no digit
/// is added to reduce it. A factor of 16 costs 2 bits of precision on the sum of the two.
inline constexpr double kGoodNoiseRatio = 16;

/// Splits q into exactly `dnum` runs such that the largest product is as small as possible, and
/// chooses P at least as large as that product, with log2(PQ) <= max_bits. Empty if it does not
/// fit. The primes of P are free ones of `pool`.
std::optional<Gadget> choose_gadget(std::span<const std::uint64_t> q, std::size_t dnum,
                                    double max_bits, std::size_t n, const PrimePool& pool);

}  // namespace jali::params
