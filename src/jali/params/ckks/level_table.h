// The moduli of every level: first plans in bits, then primes. See docs/math/levels.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jali/arith/word.h"
#include "jali/params/ckks/bootstrap.h"
#include "jali/params/prime_pool.h"

namespace jali::params {

/// Bits by which level 0 may fall short of integer_bits + scale_bits, because there are not primes
/// of every size.
inline constexpr double kLevel0Slack = 0.25;
/// How far the log2 of a scale should stay within scale_bits, and how far it must.
inline constexpr double kGoodDrift = 0.1;
inline constexpr double kMaxDrift = 0.5;

/// How many bits below scale_bits the scales of rational plans aim, in the order in which this is
/// tried. If a word has hardly enough primes, there may be levels that are a little narrower than
/// asked for although those asked for do not exist.
inline constexpr double kShortfalls[] = {0, 0.09, 0.3};

struct LevelRequest {
  Word word = Word::w64;
  int log_n = 0;
  int depth = 0;
  double scale_bits = 0;
  double integer_bits = 0;
};

/// The numbers and nominal sizes of primes. Level l has the first mains[l] mains and the terminals
/// of the bit mask terminal_masks[l]. If the mask changes, the rescale is rational: it drops some
/// primes and adds others. A plan without terminals is an ordinary one, in which each level adds k
/// mains.
struct LevelPlan {
  std::vector<int> mains;
  std::vector<std::uint32_t> terminal_masks;
  std::vector<double> main_bits;         // nominal size of every main
  std::vector<std::uint64_t> terminals;  // primes, already chosen
  double target_bits = 0;                // log2 of the scales below the top
  double log_u = 0;                      // bits of all primes
  double largest = 0;                    // bits of the largest prime
  double cost = 0;                       // plans of a lower cost are preferred
  std::uint8_t number = 0;               // PlanNumbers::levels
};

/// Plans with k primes a level, first those of the smallest k and of the fewest primes.
std::vector<LevelPlan> plan_whole(const LevelRequest& request, const PrimePool& pool);

/// Plans with terminals, found by beam search (level_plan.cpp), first those of the fewest limbs.
/// They aim at scales kShortfalls[shortfall] bits below scale_bits.
std::vector<LevelPlan> plan_rational(const LevelRequest& request, const PrimePool& pool,
                                     std::size_t shortfall);

/// Makes only the plan of this number, by at most one beam search. Empty if there is none.
std::optional<LevelPlan> plan_numbered(const LevelRequest& request, const PrimePool& pool,
                                       std::uint8_t number);

struct LevelTable {
  std::vector<std::uint64_t> q;                 // terminals, then mains
  std::size_t terminals = 0;                    // how many terminals a computation's levels use
  std::vector<std::vector<PrimeIndex>> levels;  // ascending indices into q, level 0 first
  std::vector<double> scale;                    // canonical scale of every level
  double drift = 0;                             // max over levels of |log2 scale - scale_bits|
  std::vector<PrimeIndex> sparse_p;             // rlwe::Params::sparse_p_primes
  std::uint8_t added = 0;                       // PlanNumbers::bootstrap
};

/// Chooses the primes of a plan from the top level down, so that each rescale corrects the error of
/// the one before. Empty if the primes run out or if a scale is off by more than kMaxDrift bits.
std::optional<LevelTable> name_primes(const LevelRequest& request, const LevelPlan& plan,
                                      PrimePool& pool);

/// Puts the levels of bootstrapping on top of a table, at their nominal scales, and chooses
/// sparse_p. A level adds as few primes as its bits take or, for w32, exchanges terminals. q0_bits:
/// the bits that were asked for at level 0. only: tries just the terminals of this number
/// (PlanNumbers::bootstrap). False if the primes run out.
bool add_bootstrap_levels(const BootstrapLiteral& bootstrap, double q0_bits, LevelTable& table,
                          PrimePool& pool, std::optional<std::uint8_t> only = std::nullopt);

/// The cost, in limbs, if a level of bootstrapping lacks a prime of the level below. Values that
/// are brought down to that level must then be divided instead of losing limbs. Powers of the
/// reduction are brought down to several levels; matrices follow one another.
inline constexpr double exchange_price(bool matrix) { return matrix ? 0.1 : 4; }

/// The quotient of the moduli of two levels, which are given by the indices of their primes in q.
double modulus_ratio(std::span<const std::uint64_t> q, std::span<const PrimeIndex> above,
                     std::span<const PrimeIndex> below);

/// log2 of the product of the primes.
double log2_product(const std::vector<std::uint64_t>& primes);

}  // namespace jali::params
