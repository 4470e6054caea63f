#include "jali/bootstrap/key_sets.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "jali/base/error.h"
#include "jali/bootstrap/key_parts.h"
#include "jali/bootstrap/shape.h"
#include "jali/rlwe/key_rotations.h"

namespace jali::bootstrap {
namespace {

using circuits::LevelCost;

/// A set that is faster by less than this part is left out.
constexpr double kWorth = 1.0 / 512;

/// Rotations with the highest level at which each is used, and the expanded bytes of their keys.
class Keys {
 public:
  explicit Keys(const ckks::Params& params) : params_(&params) {}

  void add(int steps, int level) {
    const int r = circuits::signed_rotation(steps, params_->slots());
    if (r == 0) return;
    const auto [at, fresh] = levels_.try_emplace(r, level);
    if (!fresh && at->second >= level) return;
    if (!fresh) bytes_ -= bytes_of(*params_, at->second);
    at->second = level;
    bytes_ += bytes_of(*params_, level);
  }
  std::size_t bytes() const { return bytes_; }

  static std::size_t bytes_of(const ckks::Params& params, int level) {
    return 2 * (params.switch_key_bytes(level) - sizeof(random::Seed));
  }

 private:
  const ckks::Params* params_;
  std::map<int, int> levels_;
  std::size_t bytes_ = 0;
};

struct Choice {
  Keys keys;
  double cost = 0;
  std::vector<const Way*> ways{};
};

/// The choices that no other one beats in both bytes and cost, by bytes.
std::vector<Choice> best_of(std::vector<Choice> choices) {
  std::ranges::stable_sort(choices, {},
                           [](const Choice& c) { return std::pair(c.keys.bytes(), c.cost); });
  std::vector<Choice> out;
  for (Choice& c : choices) {
    if (out.empty() || c.cost < out.back().cost) out.push_back(std::move(c));
  }
  return out;
}

/// The sets of the packings' own circuits, as key_sets() gives them, but each with the sum of the
/// times of one bootstrapping of each packing, in the unit of LevelCost.
std::vector<KeySet> own_sets(const ckks::Params& p, std::span<const int> log_slots,
                             std::span<const int> rotations, bool conjugate) {
  std::vector<std::vector<Part>> packings;
  Choice start{Keys(p)};
  double other = 0;
  int switched = p.depth(), conjugated = conjugate ? p.depth() : rlwe::kNoKey;
  for (int r : rotations) start.keys.add(r, p.depth());
  Choice all = start;
  for (int log : log_slots) {
    packings.push_back(parts_of(p, log));
    const Shape shape = shape_of(p, log);
    const int level = p.whole_level(shape.to_slots.level - shape.to_slots.levels);
    switched = std::max(switched, level), conjugated = std::max(conjugated, level);
    other += other_cost(p, log);
    if (const int turn = turn_of(p, log); turn != 0) {
      start.keys.add(turn, p.depth());
      start.cost += LevelCost(p, p.depth()).rotation() + shape.to_slots.bsgs.launches;
    }
  }
  // The parts with the largest keys come first, so that later ones find keys that they can share.
  std::vector<std::pair<std::size_t, std::size_t>> order;  // (packing, part)
  for (std::size_t k = 0; k < packings.size(); ++k) {
    for (std::size_t i = 0; i < packings[k].size(); ++i) order.emplace_back(k, i);
  }
  const auto part_at = [&](std::size_t at) -> const Part& {
    return packings[order[at].first][order[at].second];
  };
  std::ranges::stable_sort(order, {},
                           [&](const auto& at) { return -packings[at.first][at.second].level; });
  std::vector<Choice> choices{start};
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Part& part = part_at(k);
    all.cost += part.all.cost;
    for (int r : part.all.rotations) all.keys.add(r, part.level);
    std::vector<Choice> next;
    for (const Choice& choice : choices) {
      for (const Way& way : part.few) {
        Choice& made = next.emplace_back(choice);
        made.cost += way.cost;
        made.ways.push_back(&way);
        for (int r : way.rotations) made.keys.add(r, part.level);
      }
    }
    choices = best_of(std::move(next));
  }

  std::size_t fixed = Keys::bytes_of(p, switched) + Keys::bytes_of(p, conjugated);
  fixed += 2 * (p.encapsulation_key_bytes() - 2 * sizeof(random::Seed));
  std::vector<KeySet> out;
  for (const Choice& choice : choices) {
    if (choice.keys.bytes() >= all.keys.bytes()) break;
    KeySet set;
    set.bytes = fixed + choice.keys.bytes();
    set.time = choice.cost + other;
    for (std::size_t k = 0; k < packings.size(); ++k) {
      std::vector<const Way*> ways(packings[k].size());
      for (std::size_t at = 0; at < order.size(); ++at) {
        if (order[at].first == k) ways[order[at].second] = choice.ways[at];
      }
      set.few.emplace_back(few_of(p, log_slots[k], ways));
    }
    out.push_back(std::move(set));
  }
  out.push_back({std::vector<std::optional<FewKeys>>(packings.size()), fixed + all.keys.bytes(),
                 all.cost + other});
  return out;
}

/// The same for bootstrapping values of all slots, in the place of each of so many packings.
std::vector<KeySet> wide_sets(const ckks::Params& p, std::size_t packings,
                              std::span<const int> rotations, bool conjugate) {
  const int every = p.log_n() - 1;
  auto sets = own_sets(p, {&every, 1}, rotations, conjugate);
  for (KeySet& set : sets) {
    FewKeys few = set.few.front().value_or(FewKeys{});
    few.log_slots = every;
    set.few.assign(packings, few);
    set.time *= static_cast<double>(packings);
  }
  return sets;
}

}  // namespace

std::vector<KeySet> key_sets(const ckks::ParamsPtr& params, std::span<const int> log_slots,
                             std::span<const int> rotations, bool conjugate) {
  const auto& p = *params;
  require<InvalidArgument>(!log_slots.empty(), "key sets need at least one packing");
  for (const int log : log_slots) check_slots(p, log);
  auto sets = own_sets(p, log_slots, rotations, conjugate);
  KeySet all = std::move(sets.back());
  sets.pop_back();
  if (std::ranges::any_of(log_slots, [&](int log) { return log < p.log_n() - 1; })) {
    std::ranges::move(wide_sets(p, log_slots.size(), rotations, conjugate),
                      std::back_inserter(sets));
    std::ranges::stable_sort(sets, {}, [](const KeySet& s) { return std::pair(s.bytes, s.time); });
  }
  std::vector<KeySet> out;
  for (KeySet& set : sets) {
    if (set.bytes >= all.bytes) break;
    set.time = std::max(1.0, set.time / all.time);
    if (out.empty() || set.time <= out.back().time * (1 - kWorth)) out.push_back(std::move(set));
  }
  all.time = 1;
  out.push_back(std::move(all));
  return out;
}

double predicted_time(const ckks::ParamsPtr& params, int log_slots, bool real) {
  check_slots(*params, log_slots);
  // With raise_first, the numbers that are reduced are coefficients, and imaginary parts are
  // dropped at the end.
  const bool halved = real && params->bootstrap()->order == params::BootstrapOrder::slots_first;
  double total = other_cost(*params, log_slots, halved);
  for (const Part& part : parts_of(*params, log_slots)) total += part.all.cost;
  return total;
}

KeySet keys_within(const std::vector<KeySet>& sets, std::size_t memory) {
  require<InvalidArgument>(sets.front().bytes <= memory, [&] {
    return "memory for " + std::to_string(memory) +
           " bytes of keys is too small: the fewest keys for bootstrapping take " +
           std::to_string(sets.front().bytes) + " bytes";
  });
  const KeySet* best = &sets.front();
  for (const KeySet& set : sets) {
    if (set.bytes <= memory) best = &set;
  }
  return *best;
}

KeyLevels key_levels(const ckks::ParamsPtr& params, std::span<const int> log_slots,
                     const std::map<int, int>& rotations, const KeyChoice& choice) {
  const ckks::Params& p = *params;
  const bool fewest = choice.fewest && !choice.memory;
  KeyLevels out;
  out.relinearise = p.depth();
  const auto add = [&](int steps, int level) {
    const int r = circuits::signed_rotation(steps, p.slots());
    if (r != 0) out.rotations[r] = std::max(out.rotations[r], level);
  };
  for (const auto& [steps, level] : rotations) {
    if (fewest) {
      for (const int part : rlwe::binary_steps(steps, p.slots())) add(part, level);
    } else {
      add(steps, level);
    }
  }
  std::vector<int> wanted;
  for (const auto& [steps, level] : out.rotations) wanted.push_back(steps);
  KeySet set;
  if (choice.memory) {
    set = keys_within(key_sets(params, log_slots), *choice.memory);
  } else if (fewest) {
    set = key_sets(params, log_slots, wanted).front();
  }
  for (std::size_t k = 0; k < log_slots.size(); ++k) {
    check_slots(p, log_slots[k]);
    const std::optional<FewKeys> few = set.few.empty() ? std::nullopt : set.few[k];
    for (const auto& [steps, level] : rotation_levels(p, log_slots[k], few)) add(steps, level);
    const int with = few && few->log_slots >= 0 ? few->log_slots : log_slots[k];
    out.conjugate = std::max(out.conjugate, conjugation_level(p, with));
    out.relinearise = std::max(out.relinearise, conjugation_level(p, with));
  }
  return out;
}

}  // namespace jali::bootstrap
