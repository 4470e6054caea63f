// For which rotations keys are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jali::rlwe {

/// The rotations by powers of two in both directions: 1, -1, 2, -2, .. slots / 2. With keys for
/// these, every rotation takes at most (log2(slots) + 1) / 2 key switchings, by the non-adjacent
/// form of its steps, and a third of log2(slots) on average.
std::vector<int> power_rotations(std::size_t slots);
/// The rotations by powers of two that make up a rotation by `steps`. Steps count modulo `slots`,
/// and all of the result go in the shorter direction: binary_steps(5, n) is {1, 4}, and
/// binary_steps(-3, n) is {-1, -2}.
std::vector<int> binary_steps(int steps, std::size_t slots);
/// The union of binary_steps of all `rotations`, sorted. With keys for these, every one of the
/// rotations can be composed.
std::vector<int> composing_rotations(std::span<const int> rotations, std::size_t slots);

/// For which rotations keys are made. each: for those that are asked for. minimum: for
/// composing_rotations of them. powers: for those that are asked for and for power_rotations, so
/// that every rotation can be composed.
enum class RotationKeys : std::uint8_t { each, minimum, powers };
std::vector<int> key_rotations(std::span<const int> rotations, RotationKeys kind,
                               std::size_t slots);

}  // namespace jali::rlwe
