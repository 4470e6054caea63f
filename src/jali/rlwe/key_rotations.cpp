#include "jali/rlwe/key_rotations.h"

#include <cstdlib>
#include <set>

namespace jali::rlwe {

std::vector<int> power_rotations(std::size_t slots) {
  std::vector<int> out;
  for (std::size_t step = 1; 2 * step <= slots; step *= 2) {
    out.push_back(static_cast<int>(step));
    if (2 * step < slots) out.push_back(-static_cast<int>(step));
  }
  return out;
}

std::vector<int> binary_steps(int steps, std::size_t slots) {
  const int n = static_cast<int>(slots);
  int near = (steps % n + n) % n;
  if (near > n / 2) near -= n;
  std::vector<int> out;
  for (int bit = 1; bit <= std::abs(near); bit *= 2) {
    if ((std::abs(near) & bit) != 0) out.push_back(near < 0 ? -bit : bit);
  }
  return out;
}

std::vector<int> composing_rotations(std::span<const int> rotations, std::size_t slots) {
  std::set<int> all;
  for (int r : rotations) {
    for (int step : binary_steps(r, slots)) all.insert(step);
  }
  return {all.begin(), all.end()};
}

std::vector<int> key_rotations(std::span<const int> rotations, RotationKeys kind,
                               std::size_t slots) {
  if (kind == RotationKeys::minimum) return composing_rotations(rotations, slots);
  std::vector<int> out(rotations.begin(), rotations.end());
  if (kind == RotationKeys::powers) {
    const std::vector<int> powers = power_rotations(slots);
    out.insert(out.end(), powers.begin(), powers.end());
  }
  return out;
}

}  // namespace jali::rlwe
