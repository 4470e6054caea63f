// Which ways to bootstrap the keys of an evaluator serve.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "jali/bootstrap/key_parts.h"
#include "jali/bootstrap/key_sets.h"
#include "jali/bootstrap/shape.h"

namespace jali::bootstrap {
namespace {

using circuits::LevelCost;

/// The fastest way to bootstrap with exactly so many slots that the keys serve, and its predicted
/// time.
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

}  // namespace

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
