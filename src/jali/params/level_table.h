// The moduli of every level. See docs/math/levels.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jali/arith/word.h"
#include "jali/params/prime_pool.h"

namespace jali::params {

/// Bits by which level 0 may fall short of integer_bits + scale_bits: primes are not everywhere.
inline constexpr double kLevel0Slack = 0.25;
/// A scale may leave 2^scale_bits by this many bits, and no more, at any level.
inline constexpr double kMaxDrift = 0.5;

struct LevelRequest {
  Word word = Word::w64;
  int log_n = 0;
  int depth = 0;
  double scale_bits = 0;
  double integer_bits = 0;
};

/// How a level is made from primes.
enum class Regime : std::uint8_t {
  whole,    // k primes a level, k = 1 where the scale fits the word
  rational  // the primes of a level are a subset of all: rescaling drops some and adds some
};

struct LevelTable {
  Regime regime = Regime::whole;
  std::vector<std::uint64_t> q;                // all primes, in index order
  std::vector<std::vector<PrimeIndex>> levels; // ascending indices into q, level 0 first
  std::vector<double> scale;                   // canonical scale of every level
  double drift = 0;                            // max over levels of |log2 scale - scale_bits|
};

/// Empty when this word has no such table at this N (the caller says what would fit). Takes the
/// primes from `pool`, which must be fresh.
std::optional<LevelTable> choose_levels(const LevelRequest& request, PrimePool& pool);

/// Sum of log2 of the primes.
double log2_product(const std::vector<std::uint64_t>& primes);

}  // namespace jali::params
