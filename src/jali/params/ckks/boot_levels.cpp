// The levels of bootstrapping, which lie above those of a computation.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "jali/params/ckks/level_table.h"
#include "jali/params/real.h"

namespace jali::params {

namespace {

/// What is wanted of a level of bootstrapping.
struct BootLevel {
  double bits = 0;      // log2 of what a rescale from it divides by
  double exchange = 0;  // exchange_price
  double scale_bits = 0;  // nominal
};

/// The levels of bootstrapping, the lowest first. surplus: by how many bits q_0 is larger than was
/// asked for. Coefficients to slots starts at the scale q_0, so its levels take as many bits more.
std::vector<BootLevel> boot_levels(const BootstrapLiteral& b, double surplus = 0) {
  std::vector<BootLevel> out;
  if (b.order == BootstrapOrder::raise_first) {
    out.assign(static_cast<std::size_t>(b.stc_levels),
               {b.stc_bits, exchange_price(true), b.stc_bits});
  }
  for (int k = b.mod_levels() - 1; k >= 0; --k) {
    out.push_back({b.mod_bits + b.head_level_bits(k), exchange_price(false),
                   b.mod_bits + b.head_scale_bits(k)});
  }
  out.insert(out.end(), static_cast<std::size_t>(b.cts_levels),
             {b.cts_bits + surplus / b.cts_levels, exchange_price(true), b.cts_bits});
  return out;
}

double log2_of(std::uint64_t prime) { return portable_log2(static_cast<double>(prime)); }

/// Adds `count` new primes, whose product has `bits`, to the table and to the level. False if the
/// primes run out.
bool take(double bits, int count, LevelTable& table, PrimePool& pool,
          std::vector<PrimeIndex>& level) {
  double left = bits;
  for (int i = count; i > 0; --i) {
    const auto p = pool.take_near(portable_exp2(left / i));
    if (!p) return false;
    left -= log2_of(*p);
    level.push_back(static_cast<PrimeIndex>(table.q.size()));
    table.q.push_back(*p);
  }
  return std::fabs(left) <= kMaxDrift;
}

/// Gives each level the primes of the level below and as few new ones as its bits take. False if
/// the primes run out.
bool add_whole(const std::vector<BootLevel>& wanted, LevelTable& table, PrimePool& pool) {
  for (const BootLevel& l : wanted) {
    const auto count = static_cast<int>(std::ceil(l.bits / pool.max_bits() - 1e-9));
    if (l.bits / count < pool.scarce_bits()) return false;
    std::vector<PrimeIndex> level = table.levels.back();
    if (!take(l.bits, count, table, pool, level)) return false;
    table.levels.push_back(std::move(level));
    table.scale.push_back(portable_exp2(l.scale_bits));
  }
  return true;
}

// --- rational levels ----------------------------------------------------------------------------
// From a level to the one above, `fresh` new mains of equal size are added and the set of terminals
// is exchanged for another, so that both together make up the bits of the level. What lies above a
// level depends only on its set of terminals, so dynamic programming finds the path that is
// cheapest in limbs of all levels and of the key.

struct Step {
  std::uint32_t mask = 0;  // of the terminals that the level has
  int fresh = 0;
};

struct Path {
  double cost = std::numeric_limits<double>::infinity();
  std::vector<Step> steps;
};

constexpr int kMaxFresh = 4;
constexpr double kKeyWeight = 12;  // the cost of a prime of the key, in limbs of one level

Path cheapest_path(const std::vector<BootLevel>& wanted, const std::vector<double>& terminal_bits,
                   std::uint32_t start, double least, double cap) {
  const std::size_t masks = std::size_t{1} << terminal_bits.size();
  std::vector<double> bits(masks, 0);
  for (std::size_t m = 1; m < masks; ++m) {
    bits[m] = bits[m & (m - 1)] + terminal_bits[static_cast<std::size_t>(std::countr_zero(m))];
  }
  struct Best {
    double cost = std::numeric_limits<double>::infinity();
    std::uint32_t from = 0;
    int fresh = 0;
  };
  std::vector<std::vector<Best>> best(wanted.size() + 1, std::vector<Best>(masks));
  best[0][start].cost = 0;
  for (std::size_t l = 0; l < wanted.size(); ++l) {
    const auto above = static_cast<double>(wanted.size() - l);
    for (std::uint32_t from = 0; from < masks; ++from) {
      if (std::isinf(best[l][from].cost)) continue;
      for (std::uint32_t to = 0; to < masks; ++to) {
        const double missing = wanted[l].bits - bits[to] + bits[from];
        for (int fresh = 1; fresh <= kMaxFresh; ++fresh) {
          const double each = missing / fresh;
          if (each < least || each > cap) continue;
          const double cost = best[l][from].cost + fresh * (above + kKeyWeight) +
                              std::popcount(to) + ((from & ~to) != 0 ? wanted[l].exchange : 0);
          if (cost < best[l + 1][to].cost) best[l + 1][to] = {cost, from, fresh};
        }
      }
    }
  }
  Path path;
  std::uint32_t at = 0;
  for (std::uint32_t mask = 0; mask < masks; ++mask) {
    // Terminals that the top level lacks make the key larger and serve nothing there.
    const double cost = best.back()[mask].cost + kKeyWeight * (bits.back() - bits[mask]) / cap;
    if (cost < path.cost) path.cost = cost, at = mask;
  }
  if (std::isinf(path.cost)) return path;
  path.steps.resize(wanted.size());
  for (std::size_t l = wanted.size(); l > 0; --l) {
    path.steps[l - 1] = {at, best[l][at].fresh};
    at = best[l][at].from;
  }
  return path;
}

/// Chooses the primes of a path and adds its levels to the table. False if the primes run out.
bool name_path(const std::vector<BootLevel>& wanted, const Path& path,
               const std::vector<std::uint64_t>& added, std::uint32_t mask, LevelTable& table,
               PrimePool& pool) {
  std::vector<PrimeIndex> index;
  for (std::size_t i = 0; i < table.terminals; ++i) index.push_back(static_cast<PrimeIndex>(i));
  std::vector<PrimeIndex> mains;
  for (PrimeIndex i : table.levels.back()) {
    if (i >= table.terminals) mains.push_back(i);
  }
  for (std::uint64_t p : added) {
    pool.take(p);
    index.push_back(static_cast<PrimeIndex>(table.q.size()));
    table.q.push_back(p);
  }
  for (std::size_t l = 0; l < wanted.size(); ++l) {
    double left = wanted[l].bits;
    std::vector<PrimeIndex> level;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const bool before = (mask >> i) & 1, after = (path.steps[l].mask >> i) & 1;
      const double bits = log2_of(table.q[index[i]]);
      left -= after && !before ? bits : before && !after ? -bits : 0;
      if (after) level.push_back(index[i]);
    }
    mask = path.steps[l].mask;
    if (!take(left, path.steps[l].fresh, table, pool, mains)) return false;
    level.insert(level.end(), mains.begin(), mains.end());
    std::ranges::sort(level);
    table.levels.push_back(std::move(level));
    table.scale.push_back(portable_exp2(wanted[l].scale_bits));
  }
  return true;
}

/// Makes the levels from mains near the word's size and from terminals, which are those of the
/// table and up to two more. only: tries just the additional terminals of this number
/// (PlanNumbers::bootstrap). False if no path has primes.
bool add_rational(const std::vector<BootLevel>& wanted, LevelTable& table, PrimePool& pool,
                  std::optional<std::uint8_t> only) {
  double total = log2_product(table.q);
  for (const BootLevel& l : wanted) total += l.bits;
  const double cap = pool.bits_of_nth_largest(static_cast<int>(total / pool.max_bits()) + 12);
  const double least = pool.min_bits() + 0.5;
  constexpr std::size_t kMaxTerminals = 7;

  std::vector<double> bits;
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < table.terminals; ++i) {
    bits.push_back(log2_of(table.q[i]));
    if (std::ranges::binary_search(table.levels.back(), static_cast<PrimeIndex>(i)))
      start |= 1u << i;
  }
  std::vector<std::vector<double>> sets{{}};
  constexpr double kShares[] = {0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9};
  for (std::size_t a = 0; a < std::size(kShares); ++a) {
    const auto size = [&](std::size_t i) { return least + kShares[i] * (cap - least); };
    sets.push_back({size(a)});
    for (std::size_t b = a; b < std::size(kShares); ++b) sets.push_back({size(a), size(b)});
  }
  struct Candidate {
    Path path;
    std::vector<std::uint64_t> added;
    std::uint8_t number = 0;
  };
  std::vector<Candidate> candidates;
  for (std::size_t number = 0; number < sets.size(); ++number) {
    const auto& sizes = sets[number];
    if (only && *only != number) continue;
    if (bits.size() + sizes.size() > kMaxTerminals) continue;
    PrimePool free = pool;
    std::vector<std::uint64_t> primes;
    std::vector<double> all = bits;
    for (double size : sizes) {
      const auto p = free.take_near(portable_exp2(size));
      if (!p) break;
      primes.push_back(*p);
      all.push_back(log2_of(*p));
    }
    if (primes.size() != sizes.size()) continue;
    Path path = cheapest_path(wanted, all, start, least, cap);
    path.cost += kKeyWeight * static_cast<double>(primes.size());
    if (!path.steps.empty()) {
      candidates.push_back({std::move(path), std::move(primes), static_cast<std::uint8_t>(number)});
    }
  }
  std::ranges::stable_sort(candidates,
                           [](const auto& a, const auto& b) { return a.path.cost < b.path.cost; });
  // There are few small primes, so the pool may lack one that a path wants. Then the next path is
  // tried.
  for (const Candidate& c : candidates) {
    LevelTable made = table;
    PrimePool free = pool;
    if (!name_path(wanted, c.path, c.added, start, made, free)) continue;
    table = std::move(made);
    table.added = c.number;
    pool = std::move(free);
    return true;
  }
  return false;
}

/// Chooses P' from the q primes that level 0 does not have. It takes the fewest bits that are at
/// least `least` and at least two less than the bits of level 0, because the key's noise is sqrt(N)
/// q_0 / P'. One and two primes are tried in every combination, three to six are the smallest ones.
std::vector<PrimeIndex> choose_sparse_p(const LevelTable& table, double least) {
  const auto bits = [&](PrimeIndex i) { return portable_log2(static_cast<double>(table.q[i])); };
  double need = -2;
  for (PrimeIndex i : table.levels[0]) need += bits(i);
  need = std::max(need, least);
  std::vector<PrimeIndex> free;
  for (std::size_t i = 0; i < table.q.size(); ++i) {
    const auto index = static_cast<PrimeIndex>(i);
    if (!std::ranges::binary_search(table.levels[0], index)) free.push_back(index);
  }
  std::vector<PrimeIndex> best;
  double best_bits = 1e9;
  const auto consider = [&](std::vector<PrimeIndex> set) {
    double sum = 0;
    for (PrimeIndex i : set) sum += bits(i);
    if (sum < need || sum >= best_bits) return;
    best_bits = sum;
    best = std::move(set);
  };
  for (std::size_t i = 0; i < free.size(); ++i) {
    consider({free[i]});
    for (std::size_t j = i + 1; j < free.size(); ++j) consider({free[i], free[j]});
  }
  std::ranges::stable_sort(free, [&](PrimeIndex a, PrimeIndex b) { return bits(a) < bits(b); });
  for (std::size_t count = 3; count <= free.size() && count <= 6; ++count) {
    std::vector<PrimeIndex> run(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(run);
    consider(std::move(run));
  }
  return best;
}

}  // namespace

bool add_bootstrap_levels(const BootstrapLiteral& bootstrap, double q0_bits, LevelTable& table,
                          PrimePool& pool, std::optional<std::uint8_t> only) {
  double least = 0;
  // Larger words lose little if every level has whole primes. Then each level has all primes of the
  // one below.
  bool done = false;
  if (pool.word() == Word::w32) {
    double surplus = -q0_bits;
    for (PrimeIndex i : table.levels[0]) surplus += log2_of(table.q[i]);
    // With raise_first a slot has the sum of the key's noise in all coefficients, so P' has to be
    // larger.
    if (bootstrap.order == BootstrapOrder::raise_first) least = q0_bits + 3;
    done = add_rational(boot_levels(bootstrap, std::max(surplus, 0.0)), table, pool, only);
  } else {
    done = only.value_or(0) == 0 && add_whole(boot_levels(bootstrap), table, pool);
  }
  if (!done) return false;
  table.sparse_p = choose_sparse_p(table, least);
  return !table.sparse_p.empty();
}

}  // namespace jali::params
