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
#include "jali/bootstrap/shape.h"

namespace jali::bootstrap {
namespace {

using circuits::LevelCost;
using circuits::Sequence;

/// A set that is faster by less than this part is left out.
constexpr double kWorth = 1.0 / 512;

/// One way to do a part of the circuit.
struct Way {
  std::vector<int> rotations;
  double cost = 0;
  Sequence sequence{};  // of a matrix
  int trace = 1;  // of the trace
};

/// A matrix or the trace of one packing. `all` is the way with all keys.
struct Part {
  int level = 0;
  Way all;
  std::vector<Way> few;
};

// Without an offset, because the diagonals of a HomomorphicDft are shifted to begin at 0.
Part matrix(const ckks::Params& params, const circuits::DftOptions& dft, int level,
            const std::vector<int>& diagonals, std::size_t slots) {
  Part part{params.whole_level(level), {}, {}};
  circuits::BsgsOptions options = dft.bsgs;
  const auto way = [&](const std::vector<int>& indices) {
    const auto plan = circuits::plan_bsgs(params, level, slots, {{indices}}, options);
    return Way{plan.rotations(), plan.cost, options.sequence.value_or(Sequence{}), 1};
  };
  part.all = way(diagonals);
  const int first = circuits::first_diagonal({diagonals.begin(), diagonals.end()}, slots);
  std::vector<int> shifted;
  for (int d : diagonals) {
    shifted.push_back((d - first + static_cast<int>(slots)) % static_cast<int>(slots));
  }
  std::ranges::sort(shifted);
  for (int babies = 1; babies < 2 * static_cast<int>(shifted.size()); babies *= 2) {
    for (int own = 1; own <= babies; own *= 2) {
      options.sequence = Sequence{babies, own};
      part.few.push_back(way(shifted));
    }
  }
  return part;
}

// A power of two without a key is composed of the next lower one that has a key.
Part trace(const ckks::Params& params, int level, int log_slots, double launches) {
  Part part{params.whole_level(level), {}, {}};
  const double one = LevelCost(params, level).rotation() + launches;
  for (const int stride : {1, 2, 4}) {
    Way way;
    way.trace = stride;
    for (int k = 0; log_slots + k < params.log_n() - 1; ++k) {
      if (k % stride == 0) way.rotations.push_back(1 << (log_slots + k));
      way.cost += one * (1 << k % stride);
    }
    part.few.push_back(std::move(way));
  }
  part.all = part.few.front();
  return part;
}

/// The matrices in the order in which FewKeys lists them, then the trace.
std::vector<Part> parts_of(const ckks::Params& params, int log_slots) {
  const Shape shape = shape_of(params, log_slots);
  const std::size_t slots = std::size_t{1} << (log_slots + (shape.side_by_side ? 1 : 0));
  std::vector<Part> out;
  const auto add = [&](circuits::Dft direction, const circuits::DftOptions& dft) {
    int level = dft.level;
    for (const auto& diagonals :
         circuits::dft_diagonals(direction, log_slots, dft.levels, shape.side_by_side)) {
      out.push_back(matrix(params, dft, level--, diagonals, slots));
    }
  };
  add(circuits::Dft::coefficients_to_slots, shape.to_slots);
  add(circuits::Dft::slots_to_coefficients, shape.to_coefficients);
  out.push_back(trace(params, shape.to_slots.level, log_slots, shape.to_slots.bsgs.launches));
  return out;
}

FewKeys few_of(const ckks::Params& params, int log_slots, std::span<const Way* const> ways) {
  const auto levels = static_cast<std::size_t>(shape_of(params, log_slots).to_slots.levels);
  FewKeys out;
  for (std::size_t k = 0; k + 1 < ways.size(); ++k) {
    (k < levels ? out.to_slots : out.to_coefficients).push_back(ways[k]->sequence);
  }
  out.trace = ways.back()->trace;
  return out;
}

/// The rotation that turns the result back, which every set but all keys needs: the sum of the shifts of all matrices.
int turn_of(const ckks::Params& params, int log_slots) {
  const Shape shape = shape_of(params, log_slots);
  const std::size_t slots = std::size_t{1} << (log_slots + (shape.side_by_side ? 1 : 0));
  long long shift = 0;
  for (const auto& [direction, levels] :
       {std::pair(circuits::Dft::coefficients_to_slots, shape.to_slots.levels),
        std::pair(circuits::Dft::slots_to_coefficients, shape.to_coefficients.levels)}) {
    for (const auto& d :
         circuits::dft_diagonals(direction, log_slots, levels, shape.side_by_side)) {
      shift += circuits::first_diagonal({d.begin(), d.end()}, slots);
    }
  }
  return circuits::signed_rotation(shift, std::size_t{1} << log_slots);
}

/// What every set has in common: the conjugation and the modular reduction. real: of one number for each slot.
double other_cost(const ckks::Params& params, int log_slots, bool real = false) {
  const auto& b = *params.bootstrap();
  const Shape shape = shape_of(params, log_slots);
  const int level = shape.to_slots.level - shape.to_slots.levels;
  double total = LevelCost(params, level).rotation() + shape.to_slots.bsgs.launches;
  const auto switches = circuits::ModularReduction(reduction_options(b)).key_switches();
  const double numbers = shape.side_by_side || real ? 1 : 2;
  for (std::size_t k = 0; k < switches.size(); ++k) {
    const LevelCost cost(params, level - static_cast<int>(k));
    const double one = numbers * cost.rotation() + shape.to_slots.bsgs.launches;
    total += static_cast<double>(switches[k]) * one;
  }
  return total;
}

void check_slots(const ckks::Params& params, int log_slots) {
  require<InvalidArgument>(log_slots >= 1 && log_slots < params.log_n(), [&] {
    return "bootstrapping serves 2 to 2^" + std::to_string(params.log_n() - 1) + " slots, not 2^" +
           std::to_string(log_slots);
  });
}

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

/// The fastest way to bootstrap with exactly so many slots that the keys serve, and its predicted time.
std::optional<std::pair<FewKeys, double>> served_by(const ckks::Evaluator& evaluator,
                                                    int log_slots) {
  const auto& params = *evaluator.params();
  const auto served = [&](const Way& way, int level) {
    return std::ranges::all_of(way.rotations,
                               [&](int r) { return evaluator.has_rotation(r, level); });
  };
  const auto parts = parts_of(params, log_slots);
  double cost = other_cost(params, log_slots);
  if (std::ranges::all_of(parts, [&](const Part& p) { return served(p.all, p.level); })) {
    for (const Part& part : parts) cost += part.all.cost;
    return std::pair(FewKeys{{}, {}, 1}, cost);
  }
  if (const int turn = turn_of(params, log_slots); turn != 0) {
    if (!evaluator.has_rotation(turn, params.depth())) return std::nullopt;
    cost += LevelCost(params, params.depth()).rotation() +
            shape_of(params, log_slots).to_slots.bsgs.launches;
  }
  std::vector<const Way*> ways;
  for (const Part& part : parts) {
    const Way* best = nullptr;
    for (const Way& way : part.few) {
      if (served(way, part.level) && (best == nullptr || way.cost < best->cost)) best = &way;
    }
    if (best == nullptr) return std::nullopt;
    ways.push_back(best);
    cost += best->cost;
  }
  return std::pair(few_of(params, log_slots, ways), cost);
}

/// The sets of the packings' own circuits, as key_sets() gives them, but each with the sum of the times of one bootstrapping of each packing, in
/// the unit of LevelCost.
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
  // With raise_first, the numbers that are reduced are coefficients, and imaginary parts are dropped at the end.
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

std::optional<Served> served(const ckks::Evaluator& evaluator, int log_slots) {
  const auto& params = *evaluator.params();
  check_slots(params, log_slots);
  std::optional<Served> out;
  for (int log = log_slots; log < params.log_n(); ++log) {
    const auto found = served_by(evaluator, log);
    if (!found || (out && found->second >= out->time)) continue;
    out = {found->first, found->second};
    out->few.log_slots = log;
  }
  if (out) {
    out->time = std::max(1.0, out->time / predicted_time(evaluator.params(), log_slots, false));
  }
  return out;
}

}  // namespace jali::bootstrap
