#include "jali/rlwe/composed.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
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
