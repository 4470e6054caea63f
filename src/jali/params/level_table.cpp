#include "jali/params/level_table.h"

#include <algorithm>
#include <cmath>

#include "jali/params/real.h"

namespace jali::params {

double log2_product(const std::vector<std::uint64_t>& primes) {
  double sum = 0;
  for (std::uint64_t p : primes) sum += portable_log2(static_cast<double>(p));
  return sum;
}

namespace {

/// Scales farther than this from 2^scale_bits make k primes a level give way to rational rescaling.
constexpr double kWholeDrift = 0.05;

/// k primes a level, chosen from the top so that each scale is as near to 2^scale_bits as the
/// primes allow: with r = scale(l)^2 / 2^scale_bits, level l holds the primes nearest to r beyond
/// level l-1, and scale(l-1) = scale(l)^2 / (their product). An error of scale(l) is not handed on.
std::optional<LevelTable> whole_levels(const LevelRequest& request, PrimePool& pool) {
  const double nominal = portable_exp2(request.scale_bits);
  const double room = pool.max_bits() - 1e-3;  // bits a prime of the word can surely give
  const int per_level = static_cast<int>(std::ceil((request.scale_bits - 1e-9) / pool.max_bits()));
  if (request.scale_bits / per_level < pool.min_bits()) return std::nullopt;

  const double bits0 = request.integer_bits + request.scale_bits;
  int count0 = 1;
  while (count0 * room < bits0 - kLevel0Slack) ++count0;
  std::vector<std::uint64_t> bottom;
  double left = bits0;
  for (int i = 0; i < count0; ++i) {
    const auto p = pool.take_near(portable_exp2(left / (count0 - i)));
    if (!p) return std::nullopt;
    bottom.push_back(*p);
    left -= portable_log2(static_cast<double>(*p));
  }
  if (left > kLevel0Slack) return std::nullopt;

  LevelTable table;
  std::vector<std::vector<std::uint64_t>> added(static_cast<std::size_t>(request.depth) + 1);
  added[0] = std::move(bottom);
  table.scale.assign(added.size(), nominal);
  for (std::size_t l = added.size() - 1; l > 0; --l) {
    double ratio = table.scale[l] * table.scale[l] / nominal;  // what is left to choose
    double product = 1;
    for (int i = 0; i < per_level; ++i) {
      const int rest = per_level - i;
      const auto p = pool.take_near(rest == 1 ? ratio : portable_exp2(portable_log2(ratio) / rest));
      if (!p) return std::nullopt;
      added[l].push_back(*p);
      product *= static_cast<double>(*p);
      ratio /= static_cast<double>(*p);
    }
    table.scale[l - 1] = table.scale[l] * table.scale[l] / product;
    const double drift = std::abs(portable_log2(table.scale[l - 1]) - request.scale_bits);
    table.drift = std::max(table.drift, drift);
    if (drift > kWholeDrift) return std::nullopt;
  }
  for (const auto& primes : added) {
    table.q.insert(table.q.end(), primes.begin(), primes.end());
    auto& level = table.levels.emplace_back(table.q.size());
    for (std::size_t i = 0; i < level.size(); ++i) level[i] = static_cast<PrimeIndex>(i);
  }
  return table;
}

}  // namespace

std::optional<LevelTable> choose_levels(const LevelRequest& request, PrimePool& pool) {
  PrimePool whole_pool = pool;
  if (auto table = whole_levels(request, whole_pool)) {
    pool = std::move(whole_pool);
    return table;
  }
  return std::nullopt;
}

}  // namespace jali::params
