#include "jali/rlwe/composed.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "jali/ring/poly.h"

namespace jali::rlwe {

namespace {

std::size_t modulo(long long steps, std::size_t slots) {
  const auto n = static_cast<long long>(slots);
  return static_cast<std::size_t>((steps % n + n) % n);
}

}  // namespace

// A search in breadth over the numbers modulo `slots`. last[x] is the rotation that reached x
// first, and so on a shortest way.
std::vector<int> fewest_rotations(int steps, std::span<const int> available, std::size_t slots) {
  const std::size_t target = modulo(steps, slots);
  if (target == 0) return {};
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> last(slots, kNone);
  std::vector<std::size_t> front{0}, next;
  last[0] = 0;
  for (int terms = std::countr_zero(slots); terms > 0 && last[target] == kNone; --terms) {
    for (const std::size_t at : front) {
      for (std::uint32_t k = 0; k < available.size(); ++k) {
        const std::size_t to = modulo(static_cast<long long>(at) + available[k], slots);
        if (last[to] != kNone) continue;
        last[to] = k;
        next.push_back(to);
      }
    }
    front = std::exchange(next, {});
  }
  std::vector<int> out;
  if (last[target] == kNone) return out;
  for (std::size_t at = target; at != 0;) {
    out.push_back(available[last[at]]);
    at = modulo(static_cast<long long>(at) - out.back(), slots);
  }
  return out;
}

namespace {

// Where a branch is: the rotation of the operand modulo the slots, and of how many it is made.
struct Place {
  std::size_t steps, parts;
};

// A tree that grows until every rotation of two parts or more has its end.
class GrowingTree {
 public:
  GrowingTree(std::span<const int> available, std::size_t slots) : slots_(slots) {
    for (const int r : available) {
      if (keys_.emplace(modulo(r, slots), r).second) order_.push_back(r);
    }
  }

  // Ends rotations that are made of `parts` rotations each, by branches of one part fewer. all:
  // every rotation and its composition, in the order of `tree`'s ends; left: indices of those to
  // end.
  void end(std::span<const int> steps, std::span<const std::vector<int>> compositions,
           std::vector<std::size_t> left, std::size_t parts) {
    for (std::size_t branch = 0; !left.empty(); branch = grow(steps, compositions, left, parts)) {
      std::erase_if(left, [&](std::size_t k) {
        for (std::size_t b = branch; b < places_.size(); ++b) {
          if (places_[b].parts + 1 != parts) continue;
          if (const auto last = key_between(places_[b].steps, modulo(steps[k], slots_))) {
            tree.ends[k] = {b, *last};
            return true;
          }
        }
        return false;
      });
      if (left.empty()) break;
    }
  }

  RotationTree tree;

 private:
  // The rotation with a key that leads from one place to another, if there is one.
  std::optional<int> key_between(std::size_t from, std::size_t to) const {
    const auto key = keys_.find((to + slots_ - from) % slots_);
    return key == keys_.end() ? std::nullopt : std::optional(key->second);
  }

  std::size_t add(std::size_t from, int steps) {
    for (std::size_t k = 0; k < tree.made.size(); ++k) {
      if (tree.made[k] == RotationTree::Edge{from, steps}) return k + 1;
    }
    tree.made.push_back({from, steps});
    places_.push_back(
        {(places_[from].steps + modulo(steps, slots_)) % slots_, places_[from].parts + 1});
    return places_.size() - 1;
  }

  // Adds the branch from which most of those that are left end, and returns the first new one.
  std::size_t grow(std::span<const int> steps, std::span<const std::vector<int>> compositions,
                   std::span<const std::size_t> left, std::size_t parts) {
    const std::size_t first = places_.size();
    RotationTree::Edge best;
    std::ptrdiff_t most = 0;
    for (std::size_t b = 0; b < first; ++b) {
      if (places_[b].parts + 2 != parts) continue;
      for (const int r : order_) {
        const std::size_t at = (places_[b].steps + modulo(r, slots_)) % slots_;
        const auto ends = std::ranges::count_if(left, [&](std::size_t k) {
          return key_between(at, modulo(steps[k], slots_)).has_value();
        });
        if (ends > most) {
          most = ends;
          best = {b, r};
        }
      }
    }
    if (most > 0) {
      add(best.from, best.steps);
      return first;
    }
    // No branch is near enough: all of one composition, but its last part.
    const std::vector<int>& whole = compositions[left[0]];
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < whole.size(); ++i) at = add(at, whole[i]);
    return first;
  }

  std::size_t slots_;
  std::map<std::size_t, int> keys_;  // by rotations modulo the slots
  std::vector<int> order_;
  std::vector<Place> places_{{0, 0}};  // of the branches
};

}  // namespace

RotationTree rotation_tree(std::span<const int> steps,
                           std::span<const std::vector<int>> compositions,
                           std::span<const int> available, std::size_t slots) {
  GrowingTree growing(available, slots);
  std::map<std::size_t, std::vector<std::size_t>> by_parts;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    growing.tree.ends.push_back({0, steps[k]});
    if (!compositions[k].empty()) by_parts[compositions[k].size()].push_back(k);
  }
  for (const auto& [parts, left] : by_parts) growing.end(steps, compositions, left, parts);
  return std::move(growing.tree);
}

std::optional<int> rotation_steps(std::size_t n, std::uint64_t element) {
  const std::uint64_t mask = 2 * n - 1;
  const auto order = static_cast<int>(n / 2);
  std::uint64_t g = 1;
  for (int k = 0; k < order; ++k, g = (5 * g) & mask) {
    if (g == element) return 2 * k <= order ? k : k - order;
  }
  return std::nullopt;
}

bool can_rotate(const EvaluationKeys& keys, int steps) {
  const std::size_t n = keys.params->n();
  const std::uint64_t element = ring::galois_element(n, steps);
  if (element == 1 || keys.galois.contains(element)) return true;
  std::vector<int> available;
  for (const auto& [g, key] : keys.galois) {
    if (const auto r = rotation_steps(n, g)) available.push_back(*r);
  }
  return !fewest_rotations(steps, available, n / 2).empty();
}

}  // namespace jali::rlwe
