// Plans of levels. A beam search finds the rational ones, from the top level down. A rescale may
// drop mains that no level above has dropped. The size of such fresh mains is still free, so the
// rescale can be exact. A rescale also exchanges terminals, and may take mains back that were
// dropped before or drop them again. The price of a path is the sum of the bits by which its limbs
// fall short of the word.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "jali/params/ckks/level_table.h"
#include "jali/params/real.h"

namespace jali::params {
namespace {

/// Fills in the sums over a plan. Its cost is the average number of limbs of a level, which
/// determines time, plus the number of all limbs, which determines the size of keys.
void finish(LevelPlan& plan, double target) {
  plan.target_bits = target;
  double limbs = 0;
  for (std::size_t l = 0; l < plan.mains.size(); ++l) {
    limbs += plan.mains[l] + std::popcount(plan.terminal_masks[l]);
  }
  for (double b : plan.main_bits) {
    plan.log_u += b;
    plan.largest = std::max(plan.largest, b);
  }
  for (std::uint64_t p : plan.terminals) {
    const double b = portable_log2(static_cast<double>(p));
    plan.log_u += b;
    plan.largest = std::max(plan.largest, b);
  }
  plan.cost = limbs / static_cast<double>(plan.mains.size()) +
              static_cast<double>(plan.main_bits.size() + plan.terminals.size());
}

constexpr int kMaxTerminals = 6;
constexpr std::size_t kBeam = 24;
constexpr int kMaxMainsStep = 4;  // mains dropped or taken back by one rescale
constexpr int kMaxBack = 8;  // mains that a level may have taken back, in all
constexpr double kInexact = 0.04;  // bits of error that a rescale without a fresh main may have
constexpr double kInexactPrice = 3;  // bits of shortfall that a level pays for such a rescale

/// A level of a path. Mains are counted from the top. `fresh` of them have been dropped at some
/// level above or at this one, and this level lacks the first `out` of these.
struct Node {
  std::uint32_t mask = 0;
  int fresh = 0;
  int out = 0;
  double log_scale = 0;
  double price = 0;
  int parent = -1;
  std::vector<double> bits;  // sizes of the fresh mains
};

struct Search {
  const LevelRequest& request;
  double cap;  // bits of the largest mains
  double min_bits;  // of any prime
  double target;  // log2 of the scales below the top
  std::vector<std::uint64_t> terminals;
  std::vector<double> mask_bits;  // by mask: the sum of the bits of its terminals
  std::vector<double> mask_short;  // by mask: the sum of their shortfalls, cap - bits
  std::vector<std::pair<double, std::uint32_t>> by_bits;  // mask_bits and its mask, ascending

  Search(const LevelRequest& r, double cap_bits, double least, double target_bits,
         std::vector<std::uint64_t> primes)
      : request(r),
        cap(cap_bits),
        min_bits(least),
        target(target_bits),
        terminals(std::move(primes)) {
    const std::size_t masks = std::size_t{1} << terminals.size();
    mask_bits.assign(masks, 0);
    mask_short.assign(masks, 0);
    for (std::size_t m = 1; m < masks; ++m) {
      const auto low = static_cast<std::size_t>(std::countr_zero(m));
      const double b = portable_log2(static_cast<double>(terminals[low]));
      mask_bits[m] = mask_bits[m & (m - 1)] + b;
      mask_short[m] = mask_short[m & (m - 1)] + cap - b;
    }
    for (std::uint32_t m = 0; m < masks; ++m) by_bits.emplace_back(mask_bits[m], m);
    std::ranges::sort(by_bits);
  }

  std::vector<Node> step(const std::vector<Node>& nodes, int level) const;
  std::optional<LevelPlan> run() const;
};

std::vector<Node> Search::step(const std::vector<Node>& nodes, int level) const {
  // All levels above have a fresh main, and so do the keys: its shortfall counts that often.
  const double weight = 2.0 * request.depth - level + 1;
  struct Move {
    double price;
    double log_scale;
    double fresh_bits;  // each
    int parent;
    int out;
    std::uint32_t mask;
  };
  // To keep variety in the beam, the two best moves to each mask and each number of mains taken
  // back are kept.
  const Move none{std::numeric_limits<double>::infinity(), 0, 0, -1, 0, 0};
  std::vector<std::array<Move, 2>> buckets(mask_bits.size() * (kMaxBack + 1), {none, none});
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    std::vector<double> sum(node.bits.size() + 1, 0);
    for (std::size_t i = 0; i < node.bits.size(); ++i) sum[i + 1] = sum[i] + node.bits[i];
    const double net = 2 * node.log_scale - target;
    const int out_low = std::max({0, node.out - kMaxMainsStep, node.fresh - kMaxBack});
    for (int out = out_low; out <= node.fresh + kMaxMainsStep; ++out) {
      const int k = out - node.fresh;
      const int named = std::min(out, node.fresh);
      const double back =
          (node.fresh - named) * cap - sum.back() + sum[static_cast<std::size_t>(named)];
      // The masks that leave a possible size to the fresh mains or, without any, an error within
      // kInexact. The slack allows for rounding.
      const double rest = mask_bits[node.mask] + sum[static_cast<std::size_t>(named)] -
                          sum[static_cast<std::size_t>(node.out)] - net;
      const double least = rest + (k > 0 ? k * min_bits : -kInexact) - 1e-6;
      const double most = rest + (k > 0 ? k * cap : kInexact) + 1e-6;
      for (auto at = std::ranges::lower_bound(by_bits, std::pair(least, std::uint32_t{0}));
           at != by_bits.end() && at->first <= most; ++at) {
        const std::uint32_t mask = at->second;
        const double known = mask_bits[node.mask] - mask_bits[mask] +
                             sum[static_cast<std::size_t>(named)] -
                             sum[static_cast<std::size_t>(node.out)];
        Move move{
            node.price + mask_short[mask] + back, target, 0, static_cast<int>(index), out, mask};
        auto& [first, second] = buckets[mask * (kMaxBack + std::size_t{1}) +
                                        static_cast<std::size_t>(node.fresh - named)];
        if (move.price >= second.price) continue;  // what follows only makes it larger
        if (k > 0) {
          move.fresh_bits = (net - known) / k;
          if (move.fresh_bits > cap || move.fresh_bits < min_bits) continue;
          move.price += weight * k * (cap - move.fresh_bits);
        } else {
          move.log_scale = 2 * node.log_scale - known;
          if (std::abs(move.log_scale - target) > kInexact) continue;
          move.price += kInexactPrice;
        }
        if (move.price < first.price) {
          second = first;
          first = move;
        } else if (move.price < second.price) {
          second = move;
        }
      }
    }
  }
  // Moves of equal price stay in the order of the buckets.
  std::vector<std::pair<double, const Move*>> moves;
  for (const auto& pair : buckets) {
    for (const Move& move : pair) {
      if (move.parent >= 0) moves.emplace_back(move.price, &move);
    }
  }
  const std::size_t kept = std::min(moves.size(), kBeam);
  std::partial_sort(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(kept), moves.end());
  moves.resize(kept);
  std::vector<Node> next;
  for (const auto& [price, chosen] : moves) {
    const Move& move = *chosen;
    const Node& parent = nodes[static_cast<std::size_t>(move.parent)];
    const int fresh = std::max(parent.fresh, move.out);
    Node node{move.mask, fresh, move.out, move.log_scale, move.price, move.parent, parent.bits};
    node.bits.resize(static_cast<std::size_t>(fresh), move.fresh_bits);
    next.push_back(std::move(node));
  }
  return next;
}

std::optional<LevelPlan> Search::run() const {
  const int depth = request.depth;
  std::vector<std::vector<Node>> beam(static_cast<std::size_t>(depth) + 1);
  for (std::uint32_t mask = 0; mask < mask_bits.size(); ++mask) {
    // Terminals that the top level lacks make the keys larger and serve nothing there.
    const double idle = mask_bits.back() - mask_bits[mask];
    beam.back().push_back(
        {mask, 0, 0, request.scale_bits, idle * (depth + 1) + mask_short[mask], -1, {}});
  }
  for (std::size_t l = beam.size() - 1; l > 0; --l) {
    beam[l - 1] = step(beam[l], static_cast<int>(l) - 1);
    if (beam[l - 1].empty()) return std::nullopt;
  }
  // Mains that are never dropped make up the bits that level 0 still lacks.
  const double need = request.integer_bits + request.scale_bits;
  const Node* best = nullptr;
  double best_price = 0, bottom_bits = 0;
  int bottom = 0;
  for (const Node& node : beam[0]) {
    double held = mask_bits[node.mask];
    for (int i = node.out; i < node.fresh; ++i) held += node.bits[static_cast<std::size_t>(i)];
    const double missing = need - held;
    const int count =
        missing <= kLevel0Slack
            ? 0
            : std::max(1, static_cast<int>(std::ceil((missing - kLevel0Slack) / cap)));
    if (held == 0 && count == 0) continue;
    const double each = count == 0 ? 0 : std::clamp(missing / count, min_bits, cap);
    const double surplus = std::max(0.0, count * each - missing);
    const double price = node.price + 2.0 * (depth + 1) * (surplus + count * (cap - each));
    if (best == nullptr || price < best_price) {
      best = &node;
      best_price = price;
      bottom = count;
      bottom_bits = each;
    }
  }
  if (best == nullptr) return std::nullopt;

  LevelPlan plan;
  plan.terminals = terminals;
  plan.main_bits.assign(static_cast<std::size_t>(bottom), bottom_bits);
  plan.main_bits.insert(plan.main_bits.end(), best->bits.rbegin(), best->bits.rend());
  const int all = static_cast<int>(plan.main_bits.size());
  const Node* node = best;
  for (std::size_t l = 0;; ++l) {
    plan.mains.push_back(all - node->out);
    plan.terminal_masks.push_back(node->mask);
    if (node->parent < 0) break;
    node = &beam[l + 1][static_cast<std::size_t>(node->parent)];
  }
  std::uint32_t used = 0;
  for (std::uint32_t mask : plan.terminal_masks) used |= mask;
  // If a terminal is not used, a smaller set of terminals does the same.
  if (used + 1 != mask_bits.size()) return std::nullopt;
  finish(plan, target);
  return plan;
}

}  // namespace

std::vector<LevelPlan> plan_whole(const LevelRequest& request, const PrimePool& pool) {
  const double s = request.scale_bits;
  const double bits0 = request.integer_bits + s;
  const int bottom =
      std::max(1, static_cast<int>(std::ceil((bits0 - kLevel0Slack) / pool.max_bits())));
  const int k = std::max(1, static_cast<int>(std::ceil(s / pool.max_bits() - 1e-9)));
  std::vector<LevelPlan> plans;
  for (int per_level : {k, k + 1}) {
    if (s / per_level < pool.min_bits() && request.depth > 0) break;
    if (per_level > k && request.depth == 0) break;
    for (int extra : {0, 1}) {
      const int count = bottom + extra;
      LevelPlan plan;
      for (int l = 0; l <= request.depth; ++l) plan.mains.push_back(count + l * per_level);
      plan.terminal_masks.assign(plan.mains.size(), 0);
      plan.main_bits.assign(static_cast<std::size_t>(count),
                            std::clamp(bits0 / count, pool.scarce_bits(), pool.max_bits()));
      plan.main_bits.resize(static_cast<std::size_t>(plan.mains.back()), s / per_level);
      plan.number = static_cast<std::uint8_t>(2 * (per_level - k) + extra);
      finish(plan, s);
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

namespace {

/// A set of terminals to try: `small` of the smallest size, and `other` of the size least + share
/// (cap - least).
struct TerminalSet {
  double share = 0;
  int small = 0, other = 0;
};

/// All sets of up to six terminals: at least one of the smallest size, the others of one of a few
/// sizes.
std::vector<TerminalSet> terminal_sets() {
  std::vector<TerminalSet> sets;
  for (double share : {0.0, 0.2, 0.4, 0.8, 1.0}) {
    for (int small = 1; small <= kMaxTerminals; ++small) {
      for (int other = share == 0 ? 0 : 1; other <= (share == 0 ? 0 : kMaxTerminals - small);
           ++other) {
        sets.push_back({share, small, other});
      }
    }
  }
  return sets;
}

constexpr std::size_t kWholePlans = 4, kTerminalSets = 66;
static_assert(kWholePlans + std::size(kShortfalls) * kTerminalSets <= 256, "a number is one byte");

/// The bits of the largest mains, such that there are more primes of this size than the levels
/// take.
double largest_mains(const LevelRequest& request, const PrimePool& pool) {
  const double total = request.integer_bits + (request.depth + 1) * request.scale_bits;
  return pool.bits_of_nth_largest(static_cast<int>(total / pool.max_bits()) + 6);
}

/// The rational plan for one set of terminals. Empty if there is none.
std::optional<LevelPlan> plan_with(const LevelRequest& request, const PrimePool& pool, double cap,
                                   std::size_t shortfall, std::size_t set) {
  const double least = pool.min_bits() + 0.5;
  const double target = request.scale_bits - kShortfalls[shortfall];
  const TerminalSet wanted = terminal_sets()[set];
  PrimePool free = pool;
  std::vector<std::uint64_t> terminals;
  for (int i = 0; i < wanted.small + wanted.other; ++i) {
    const double bits = least + (i < wanted.small ? 0 : (cap - 0.1 - least) * wanted.share);
    const auto p = free.take_near(portable_exp2(bits));
    if (!p) return std::nullopt;
    terminals.push_back(*p);
  }
  auto plan = Search(request, cap, least, target, std::move(terminals)).run();
  if (plan) {
    plan->number = static_cast<std::uint8_t>(kWholePlans + shortfall * kTerminalSets + set);
  }
  return plan;
}

}  // namespace

std::vector<LevelPlan> plan_rational(const LevelRequest& request, const PrimePool& pool,
                                     std::size_t shortfall) {
  const double cap = largest_mains(request, pool);
  std::vector<LevelPlan> plans;
  for (std::size_t set = 0; set < kTerminalSets; ++set) {
    if (auto plan = plan_with(request, pool, cap, shortfall, set)) {
      plans.push_back(std::move(*plan));
    }
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const LevelPlan& a, const LevelPlan& b) { return a.cost < b.cost; });
  return plans;
}

std::optional<LevelPlan> plan_numbered(const LevelRequest& request, const PrimePool& pool,
                                       std::uint8_t number) {
  if (number < kWholePlans) {
    for (LevelPlan& plan : plan_whole(request, pool)) {
      if (plan.number == number) return std::move(plan);
    }
    return std::nullopt;
  }
  const std::size_t rational = number - kWholePlans;
  if (rational >= std::size(kShortfalls) * kTerminalSets) return std::nullopt;
  return plan_with(request, pool, largest_mains(request, pool), rational / kTerminalSets,
                   rational % kTerminalSets);
}

}  // namespace jali::params
