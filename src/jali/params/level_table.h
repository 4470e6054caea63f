// The moduli of every level: plans in bits, then primes. See docs/math/levels.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jali/arith/word.h"
#include "jali/params/bootstrap.h"
#include "jali/params/prime_pool.h"

namespace jali::params {

/// Bits by which level 0 may fall short of integer_bits + scale_bits: primes are not everywhere.
inline constexpr double kLevel0Slack = 0.25;
/// Bits by which a scale should at most leave 2^scale_bits, and must at most.
inline constexpr double kGoodDrift = 0.1;
inline constexpr double kMaxDrift = 0.5;

/// Bits below scale_bits that the scales of rational plans aim at, in the order in which they are tried: where the
/// word has hardly enough primes, levels a little narrower than asked for exist when those asked for do not.
inline constexpr double kShortfalls[] = {0, 0.09, 0.3};

struct LevelRequest {
  Word word = Word::w64;
  int log_n = 0;
  int depth = 0;
  double scale_bits = 0;
  double integer_bits = 0;
};

/// Counts and nominal sizes. Level l holds the first mains[l] mains and the terminals of the bit mask
/// terminal_masks[l]. Where the mask changes the rescale is rational: it drops some primes and adds
/// others. A plan without terminals is the ordinary one: k mains a level beyond those of level 0.
struct LevelPlan {
  std::vector<int> mains;
  std::vector<std::uint32_t> terminal_masks;
  std::vector<double> main_bits;         // nominal size of every main
  std::vector<std::uint64_t> terminals;  // primes, already chosen
  double target_bits = 0;                // log2 of the scales below the top
  double log_u = 0;                      // bits of all primes
  double largest = 0;                    // bits of the largest prime
  double cost = 0;                       // the order of preference
  std::uint8_t number = 0;               // PlanNumbers::levels
};

/// Plans with k primes a level, the least k and the fewest primes first.
std::vector<LevelPlan> plan_whole(const LevelRequest& request, const PrimePool& pool);

/// Plans with terminals, fewest limbs first, by beam search: see level_plan.cpp. They aim at scales
/// kShortfalls[shortfall] bits below scale_bits.
std::vector<LevelPlan> plan_rational(const LevelRequest& request, const PrimePool& pool,
                                     std::size_t shortfall);

/// The plan of a number alone: one beam search at most. Empty when there is none.
std::optional<LevelPlan> plan_numbered(const LevelRequest& request, const PrimePool& pool,
                                       std::uint8_t number);

struct LevelTable {
  std::vector<std::uint64_t> q;                 // terminals, then mains
  std::size_t terminals = 0;                    // of the levels of a computation
  std::vector<std::vector<PrimeIndex>> levels;  // ascending indices into q, level 0 first
  std::vector<double> scale;                    // canonical scale of every level
  double drift = 0;                             // max over levels of |log2 scale - scale_bits|
  std::vector<PrimeIndex> sparse_p;             // of the sparse secret's key: see ckks::Params
  std::uint8_t added = 0;                       // PlanNumbers::bootstrap
};

/// Chooses the primes of a plan from the top, each rescale correcting the error of the one before.
/// Empty when the primes run out or a scale leaves by more than kMaxDrift.
std::optional<LevelTable> name_primes(const LevelRequest& request, const LevelPlan& plan,
                                      PrimePool& pool);

/// Puts the levels of bootstrapping on top of a table, at their nominal scales, and chooses sparse_p: each
/// of as few primes as its bits take or, for w32, by exchanging terminals. q0_bits: what level 0 was asked to have. False when the primes run out.
/// only: the terminals of this number alone, PlanNumbers::bootstrap.
bool add_bootstrap_levels(const BootstrapLiteral& bootstrap, double q0_bits, LevelTable& table,
                          PrimePool& pool, std::optional<std::uint8_t> only = std::nullopt);

/// What a level below with primes that a level of bootstrapping lacks costs it, in limbs: what is dropped to that level must be
/// divided. Powers of the reduction are; matrices follow one another.
inline constexpr double exchange_price(bool matrix) { return matrix ? 0.1 : 4; }

/// Q of one level over Q of another, given their primes' indices into q.
double modulus_ratio(std::span<const std::uint64_t> q, std::span<const PrimeIndex> above,
                     std::span<const PrimeIndex> below);

/// Sum of log2 of the primes.
double log2_product(const std::vector<std::uint64_t>& primes);

}  // namespace jali::params
