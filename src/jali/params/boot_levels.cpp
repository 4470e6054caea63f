// The levels of bootstrapping, above those of a computation.
#include <algorithm>
#include <cmath>

#include "jali/params/level_table.h"
#include "jali/params/real.h"

namespace jali::params {

double LevelTable::ratio_up(std::size_t l) const {
  double product = 1;
  for (PrimeIndex i : levels[l]) {
    if (!std::ranges::binary_search(levels[l - 1], i)) product *= static_cast<double>(q[i]);
  }
  return product;
}

namespace {

bool add_level(double bits, LevelTable& table, PrimePool& pool) {
  const auto count = static_cast<int>(std::ceil(bits / pool.max_bits() - 1e-9));
  if (bits / count < pool.scarce_bits()) return false;
  std::vector<PrimeIndex> level = table.levels.back();
  double left = bits;
  for (int i = count; i > 0; --i) {
    const auto p = pool.take_near(portable_exp2(left / i));
    if (!p) return false;
    left -= portable_log2(static_cast<double>(*p));
    level.push_back(static_cast<PrimeIndex>(table.q.size()));
    table.q.push_back(*p);
  }
  if (std::fabs(left) > kMaxDrift) return false;
  table.levels.push_back(std::move(level));
  table.scale.push_back(portable_exp2(bits));
  return true;
}

/// The fewest bits that reach those of level 0, from q primes that are not its own: one or two primes
/// are tried in every combination, more are taken from the smallest.
std::vector<PrimeIndex> choose_sparse_p(const LevelTable& table) {
  const auto bits = [&](PrimeIndex i) { return portable_log2(static_cast<double>(table.q[i])); };
  // The key's noise is q_0 / P' times that of a rescale or so: two bits short do not matter.
  double need = -2;
  for (PrimeIndex i : table.levels[0]) need += bits(i);
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

bool add_bootstrap_levels(const BootstrapLiteral& bootstrap, LevelTable& table, PrimePool& pool) {
  std::vector<double> bits;
  if (bootstrap.order == BootstrapOrder::raise_first) {
    bits.assign(static_cast<std::size_t>(bootstrap.stc_levels), bootstrap.stc_bits);
  }
  bits.insert(bits.end(), static_cast<std::size_t>(bootstrap.mod_levels()), bootstrap.mod_bits);
  bits.insert(bits.end(), static_cast<std::size_t>(bootstrap.cts_levels), bootstrap.cts_bits);
  for (double b : bits) {
    if (!add_level(b, table, pool)) return false;
  }
  table.sparse_p = choose_sparse_p(table);
  return !table.sparse_p.empty();
}

}  // namespace jali::params
