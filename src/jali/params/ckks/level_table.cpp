#include "jali/params/ckks/level_table.h"

#include <algorithm>
#include <cmath>

#include "jali/params/real.h"

namespace jali::params {

double log2_product(const std::vector<std::uint64_t>& primes) {
  double sum = 0;
  for (std::uint64_t p : primes) sum += portable_log2(static_cast<double>(p));
  return sum;
}

double modulus_ratio(std::span<const std::uint64_t> q, std::span<const PrimeIndex> above,
                     std::span<const PrimeIndex> below) {
  const auto only = [&](std::span<const PrimeIndex> in, std::span<const PrimeIndex> not_in) {
    double product = 1;
    for (PrimeIndex i : in) {
      if (!std::ranges::binary_search(not_in, i)) product *= static_cast<double>(q[i]);
    }
    return product;
  };
  return only(above, below) / only(below, above);
}

namespace {

double log2_of(std::uint64_t prime) { return portable_log2(static_cast<double>(prime)); }

/// Chooses the primes of a plan's mains one by one, so that products stay near their targets.
class Mains {
 public:
  Mains(const LevelPlan& plan, PrimePool& pool)
      : pool_(pool), plan_(plan), primes_(plan.main_bits.size(), 0) {}

  bool ok() const { return ok_; }
  const std::vector<std::uint64_t>& primes() const { return primes_; }

  /// Chooses primes near the plan's sizes for those of [begin, end) that have none. If total is
  /// given, the last of them gets what is left of `total` bits for all of [begin, end).
  void name(std::size_t begin, std::size_t end, std::optional<double> total = std::nullopt) {
    double planned = 0;
    double named = 0;
    std::size_t last = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (primes_[i] == 0) last = i;
    }
    double fixed = 0;
    for (std::size_t i = begin; i < end; ++i) fixed += primes_[i] == 0 ? 0 : log2_of(primes_[i]);
    for (std::size_t i = begin; i < end; ++i) {
      if (primes_[i] != 0) continue;
      planned += plan_.main_bits[i];
      named += take(i, (total && i == last ? *total - fixed : planned) - named);
    }
  }

 private:
  double take(std::size_t i, double bits) {
    const auto p = pool_.take_near(portable_exp2(std::clamp(bits, 1.0, 63.0)));
    ok_ = ok_ && p.has_value();
    if (!p) return bits;
    primes_[i] = *p;
    return log2_of(*p);
  }

  PrimePool& pool_;
  const LevelPlan& plan_;
  std::vector<std::uint64_t> primes_;
  bool ok_ = true;
};

}  // namespace

std::optional<LevelTable> name_primes(const LevelRequest& request, const LevelPlan& plan,
                                      PrimePool& pool) {
  const std::size_t levels = plan.mains.size();
  for (std::uint64_t p : plan.terminals) pool.take(p);
  Mains mains(plan, pool);
  // In an ordinary plan, the mains that no rescale drops have sizes of their own, and choose first.
  const auto bottom = static_cast<std::size_t>(plan.mains[0]);
  if (plan.terminals.empty()) mains.name(0, bottom);

  LevelTable table;
  table.scale.assign(levels, portable_exp2(request.scale_bits));
  for (std::size_t l = levels - 1; l > 0 && mains.ok(); --l) {
    const auto a = static_cast<std::size_t>(plan.mains[l]);
    const auto a_next = static_cast<std::size_t>(plan.mains[l - 1]);
    // scale(l-1) = scale(l)^2 * added / dropped shall be 2^target_bits.
    double net = 2 * portable_log2(table.scale[l]) - plan.target_bits;  // dropped / added
    double dropped = 1;
    double added = 1;
    for (std::size_t i = 0; i < plan.terminals.size(); ++i) {
      const auto p = static_cast<double>(plan.terminals[i]);
      const bool before = (plan.terminal_masks[l] >> i) & 1;
      const bool after = (plan.terminal_masks[l - 1] >> i) & 1;
      if (before && !after) {
        dropped *= p;
        net -= portable_log2(p);
      } else if (after && !before) {
        added *= p;
        net += portable_log2(p);
      }
    }
    mains.name(std::min(a, a_next), std::max(a, a_next), a_next < a ? net : -net);
    if (!mains.ok()) return std::nullopt;
    for (std::size_t i = a_next; i < a; ++i) dropped *= static_cast<double>(mains.primes()[i]);
    for (std::size_t i = a; i < a_next; ++i) added *= static_cast<double>(mains.primes()[i]);
    table.scale[l - 1] = table.scale[l] * table.scale[l] * (added / dropped);
    const double drift = std::abs(portable_log2(table.scale[l - 1]) - request.scale_bits);
    table.drift = std::max(table.drift, drift);
    if (drift > kMaxDrift) return std::nullopt;
  }
  mains.name(0, mains.primes().size());
  if (!mains.ok()) return std::nullopt;

  table.q = plan.terminals;
  table.terminals = plan.terminals.size();
  table.q.insert(table.q.end(), mains.primes().begin(), mains.primes().end());
  for (std::size_t l = 0; l < levels; ++l) {
    auto& level = table.levels.emplace_back();
    for (std::size_t i = 0; i < plan.terminals.size(); ++i) {
      if ((plan.terminal_masks[l] >> i) & 1) level.push_back(static_cast<PrimeIndex>(i));
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.mains[l]); ++i) {
      level.push_back(static_cast<PrimeIndex>(plan.terminals.size() + i));
    }
  }
  double log_q0 = 0;
  for (PrimeIndex i : table.levels[0]) log_q0 += log2_of(table.q[i]);
  if (log_q0 < request.integer_bits + request.scale_bits - 2 * kLevel0Slack) return std::nullopt;
  return table;
}

}  // namespace jali::params
