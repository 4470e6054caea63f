#include "jali/ckks/composed.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>

namespace jali::ckks {

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

std::optional<int> rotation_steps(std::size_t n, std::uint64_t element) {
  const std::uint64_t mask = 2 * n - 1;
  const auto order = static_cast<int>(n / 2);
  std::uint64_t g = 1;
  for (int k = 0; k < order; ++k, g = (5 * g) & mask) {
    if (g == element) return 2 * k <= order ? k : k - order;
  }
  return std::nullopt;
}

bool can_rotate(const rlwe::EvaluationKeys& keys, int steps) {
  const std::size_t n = keys.params->n();
  const std::uint64_t element = ring::galois_element(n, steps);
  if (element == 1 || keys.galois.contains(element)) return true;
  std::vector<int> available;
  for (const auto& [g, key] : keys.galois) {
    if (const auto r = rotation_steps(n, g)) available.push_back(*r);
  }
  return !fewest_rotations(steps, available, n / 2).empty();
}

Ciphertext composed_rotate(const Evaluator& e, const Ciphertext& a, int steps) {
  if (e.has_rotation(steps, a.level)) return e.rotate(a, steps);
  const std::vector<int> parts = e.composition(steps, a.level);
  Ciphertext out = e.rotate(a, parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return out;
}

Ciphertext composed_rotate_hoisted(const Evaluator& e, const Hoisted& a, int steps) {
  const int level = a.source->level;
  if (e.has_rotation(steps, level)) return e.rotate_hoisted(a, steps);
  const std::vector<int> parts = e.composition(steps, level);
  Ciphertext out = e.rotate_hoisted(a, parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return out;
}

Extended composed_rotate_extended(const Evaluator& e, const Hoisted& a, int steps) {
  const int level = a.source->level;
  if (e.has_rotation(steps, level)) return e.rotate_extended(a, steps);
  const std::vector<int> parts = e.composition(steps, level);
  Ciphertext out = e.rotate_hoisted(a, parts[0]);
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return e.rotate_extended(e.hoist(out), parts.back());
}

void composed_rotate_accumulate(const Evaluator& e, Extended& acc,
                                std::span<const Extended* const> a, std::span<const int> steps) {
  std::vector<const Extended*> operands(a.begin(), a.end());
  std::vector<int> last(steps.begin(), steps.end());
  std::vector<Extended> turned;
  turned.reserve(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (e.has_rotation(steps[k], a[k]->level)) continue;
    const std::vector<int> parts = e.composition(steps[k], a[k]->level);
    last[k] = parts.back();
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      Extended sum;
      e.rotate_accumulate(sum, {&operands[k], 1}, {&parts[i], 1});
      if (i == 0) {
        operands[k] = &turned.emplace_back(std::move(sum));
      } else {
        turned.back() = std::move(sum);
      }
    }
  }
  e.rotate_accumulate(acc, operands, last);
}

}  // namespace jali::ckks
