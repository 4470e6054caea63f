// A candidate for a level is a set of primes: some of the terminals, which are primes that the
// whole parameters exchange, and the first mains, which are all other primes, except for a few
// changes. A beam search finds a cheap path through the candidates of every level.
#include "jali/params/ckks/part_levels.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "jali/params/ckks/level_table.h"
#include "jali/params/real.h"

namespace jali::params {
namespace {

constexpr std::size_t kMaxPrimes = 256, kMaxTerminals = 7;
/// The number of cheapest candidates of a level from which those of the next level are reached.
constexpr std::size_t kBeam = 256;
/// Mains are grouped by size, in steps of this many bits.
constexpr double kSizeStep = 0.2;

/// What candidates may differ in, in bits. Rooms are tried in the order of kRooms.
struct Room {
  /// How much smaller and how much larger the ratio of a level may be than in the whole.
  double less = 0, more = 0;
  /// How far off the modulus of a level may be.
  double modulus = 0;
  /// How much larger than that both may be for a matrix, whose diagonals then only get finer.
  double matrix_more = 0;
  /// How many mains a candidate may add or leave out.
  std::size_t changes = 0;
};
constexpr Room kRooms[] = {{0.33, 0.33, 0.4, 0, 4}, {0.33, 0.33, 1, 2, 3}, {0.5, 1.5, 2, 14, 4}};
/// How many bits smaller a matrix's ratio may be. Its diagonals get as much coarser.
constexpr double kMatrixLess = 0.2;
/// The price of a ratio that is off by one bit, in limbs of a level of the reduction. It grows with
/// the square of the error.
constexpr double kErrorPrice = 100;
/// The limbs of a matrix's level weigh this many times more, because a matrix switches keys as many
/// times more often.
constexpr double kMatrixWeight = 4;

using Set = std::bitset<kMaxPrimes>;

/// A level of bootstrapping in the whole parameters.
struct Wanted {
  double bits = 0;  // log2 of its ratio
  bool matrix = false;
  std::size_t limbs = 0;
  std::vector<PrimeIndex> primes;  // the q primes that keys for this level have
};

struct Candidate {
  Set set;
  double bits = 0;
  double price = 0;  // of its limbs and digits
  double cost = std::numeric_limits<double>::infinity();  // of the cheapest path to it ...
  std::size_t from = 0;  // ... which comes from this one of the level below
};

/// The mains by which a candidate differs from having the first ones, and the bits that this adds.
struct Change {
  double bits = 0;
  Set set;
};

class Planner {
 public:
  Planner(const ckks::Params& whole, const Room& room);
  /// The sets of every level above `depth`; empty for none.
  std::vector<Set> plan(int depth) const;

 private:
  bool is_terminal(PrimeIndex i) const {
    return std::ranges::find(terminals_, i) != terminals_.end();
  }
  Candidate candidate(const Set& set, double bits, double weight) const;
  std::vector<Change> changes(std::span<const PrimeIndex> mains, std::size_t count) const;
  std::vector<Candidate> candidates(const Wanted& wanted, double bits) const;
  void reach(std::vector<Candidate>& level, const Wanted& wanted,
             const std::vector<Candidate>& below) const;

  const ckks::Params& whole_;
  Room room_;
  std::vector<double> bits_;  // of every prime of Q
  std::vector<PrimeIndex> terminals_;
  std::vector<Set> digits_;
  std::vector<Wanted> wanted_;
};

Planner::Planner(const ckks::Params& whole, const Room& room)
    : whole_(whole), room_(room), digits_(whole.dnum()) {
  for (PrimeIndex i : whole.q_primes()) {
    bits_.push_back(portable_log2(static_cast<double>(whole.primes()[i])));
  }
  for (std::size_t d = 0; d < whole.dnum(); ++d) {
    for (std::size_t i = whole.digit_begin(d); i < whole.digit_begin(d + 1); ++i) digits_[d].set(i);
  }
  for (int l = 0; l < whole.top(); ++l) {
    const auto& above = whole.level(l + 1).primes;
    for (PrimeIndex i : whole.level(l).primes) {
      if (!std::ranges::binary_search(above, i) && !is_terminal(i)) terminals_.push_back(i);
    }
  }
  // Keeps the smallest terminals, because fractions of a main are made of these.
  std::ranges::sort(terminals_, [&](PrimeIndex a, PrimeIndex b) {
    return std::pair(bits_[a], a) < std::pair(bits_[b], b);
  });
  if (terminals_.size() > kMaxTerminals) terminals_.resize(kMaxTerminals);

  const BootstrapLiteral& b = *whole.bootstrap();
  const int reduction = whole.depth() + (b.order == BootstrapOrder::raise_first ? b.stc_levels : 0);
  for (int l = whole.depth() + 1; l <= whole.top(); ++l) {
    Wanted& w = wanted_.emplace_back();
    w.bits = portable_log2(whole.ratio(l));
    w.matrix = l <= reduction || l > reduction + b.mod_levels();
    w.limbs = whole.level(l).primes.size();
    for (PrimeIndex i : whole.key_primes(l)) {
      if (i < whole.q_count()) w.primes.push_back(i);
    }
  }
}

// A key switch lifts every digit to all limbs and those of P, and divides once. The price is for
// that.
Candidate Planner::candidate(const Set& set, double bits, double weight) const {
  Candidate out;
  out.set = set;
  out.bits = bits;
  const auto digits = std::ranges::count_if(digits_, [&](const Set& d) { return (d & set).any(); });
  out.price = weight * static_cast<double>(set.count() + whole_.p_count()) *
              static_cast<double>(digits + 1) / static_cast<double>(digits_.size() + 1);
  return out;
}

// Of every size, the last main below `count` may be left out and the first one above may be added.
// Mains count - 1 and count are not changed, because that would be a candidate with another count.
std::vector<Change> Planner::changes(std::span<const PrimeIndex> mains, std::size_t count) const {
  std::vector<std::pair<double, PrimeIndex>> single;
  std::set<double> left, taken;
  const auto size = [&](std::size_t i) { return std::floor(bits_[mains[i]] / kSizeStep); };
  for (std::size_t i = count; i-- > 0;) {
    if (i + 1 < count && left.insert(size(i)).second)
      single.emplace_back(-bits_[mains[i]], mains[i]);
  }
  for (std::size_t i = count + 1; i < mains.size(); ++i) {
    if (taken.insert(size(i)).second) single.emplace_back(bits_[mains[i]], mains[i]);
  }
  std::vector<Change> out{{}};
  for (const auto& [bits, prime] : single) {
    for (std::size_t k = 0, end = out.size(); k < end; ++k) {
      if (out[k].set.count() == room_.changes) continue;
      Change more = out[k];
      more.bits += bits;
      more.set.set(prime);
      out.push_back(more);
    }
  }
  std::ranges::stable_sort(out, {}, &Change::bits);
  return out;
}

std::vector<Candidate> Planner::candidates(const Wanted& wanted, double bits) const {
  std::vector<PrimeIndex> terminals, mains;
  for (PrimeIndex i : wanted.primes) (is_terminal(i) ? terminals : mains).push_back(i);
  std::vector<Change> masks{{}};
  for (PrimeIndex i : terminals) {
    for (std::size_t k = 0, end = masks.size(); k < end; ++k) {
      Change more = masks[k];
      more.bits += bits_[i];
      more.set.set(i);
      masks.push_back(more);
    }
  }
  const double weight = wanted.matrix ? kMatrixWeight : 1;
  const double above = room_.modulus + (wanted.matrix ? room_.matrix_more : 0);
  // Changes may add or remove two mains beyond what the terminals make up for.
  const double far = 2 * *std::ranges::max_element(bits_);
  std::vector<Candidate> out;
  Change first;
  for (std::size_t count = 0; count <= mains.size(); ++count) {
    if (count > 0) {
      first.bits += bits_[mains[count - 1]];
      first.set.set(mains[count - 1]);
    }
    if (first.bits + masks.back().bits + far < bits) continue;
    if (first.bits - far > bits + above) break;
    const auto all = changes(mains, count);
    for (const Change& mask : masks) {
      const double missing = bits - first.bits - mask.bits;
      auto change = std::ranges::lower_bound(all, missing - room_.modulus, {}, &Change::bits);
      for (; change != all.end() && change->bits <= missing + above; ++change) {
        const Set set = (first.set ^ change->set) | mask.set;
        if (set.count() > wanted.limbs) continue;
        out.push_back(candidate(set, first.bits + mask.bits + change->bits, weight));
      }
    }
  }
  return out;
}

// Finds the cheapest way to each candidate from those of the level below, which are sorted by their
// costs.
void Planner::reach(std::vector<Candidate>& level, const Wanted& wanted,
                    const std::vector<Candidate>& below) const {
  const double least = -(wanted.matrix ? kMatrixLess : room_.less);
  const double most = room_.more + (wanted.matrix ? room_.matrix_more : 0);
  const double exchange = exchange_price(wanted.matrix);
  for (Candidate& to : level) {
    for (std::size_t i = 0; i < below.size(); ++i) {
      const Candidate& from = below[i];
      double cost = from.cost + to.price;
      if (cost >= to.cost) break;
      const double error = to.bits - from.bits - wanted.bits;
      if (error < least || error > most) continue;
      if (!wanted.matrix || error < 0) cost += kErrorPrice * error * error;
      if (cost >= to.cost) continue;
      if ((from.set & ~to.set).any()) cost += exchange;
      if (cost < to.cost) to.cost = cost, to.from = i;
    }
  }
  std::erase_if(level, [](const Candidate& c) { return std::isinf(c.cost); });
  std::ranges::stable_sort(level, {}, &Candidate::cost);
  if (level.size() > kBeam) level.resize(kBeam);
}

std::vector<Set> Planner::plan(int depth) const {
  Set start;
  for (PrimeIndex i : whole_.level(depth).primes) start.set(i);
  std::vector<std::vector<Candidate>> levels{{candidate(start, whole_.level(depth).log_q, 0)}};
  levels[0][0].cost = 0;
  double bits = levels[0][0].bits;
  for (const Wanted& wanted : wanted_) {
    bits += wanted.bits;
    auto level = candidates(wanted, bits);
    reach(level, wanted, levels.back());
    if (level.empty()) return {};
    levels.push_back(std::move(level));
  }
  std::vector<Set> out(wanted_.size());
  std::size_t at = 0;
  for (std::size_t j = wanted_.size(); j > 0; --j) {
    out[j - 1] = levels[j][at].set;
    at = levels[j][at].from;
  }
  return out;
}

}  // namespace

std::vector<std::vector<PrimeIndex>> part_levels(const ckks::Params& whole, int depth) {
  if (whole.q_count() > kMaxPrimes) return {};
  for (const Room& room : kRooms) {
    const auto sets = Planner(whole, room).plan(depth);
    if (sets.empty()) continue;
    std::vector<std::vector<PrimeIndex>> levels(sets.size());
    for (std::size_t j = 0; j < sets.size(); ++j) {
      for (PrimeIndex i : whole.q_primes()) {
        if (sets[j].test(i)) levels[j].push_back(i);
      }
    }
    return levels;
  }
  return {};
}

}  // namespace jali::params
