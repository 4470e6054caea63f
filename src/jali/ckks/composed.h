// Rotations by any number of slots with the keys that there are. A rotation that has no key of its own is composed of the
// fewest others that have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jali/ckks/evaluator.h"
#include "jali/rlwe/keys.h"

namespace jali::ckks {

/// The rotations by powers of two in both directions: 1, -1, 2, -2, .. slots / 2. With keys for these, every rotation takes
/// at most (log2(slots) + 1) / 2 key switchings, by the non-adjacent form of its steps, and a third of log2(slots) on
/// average.
std::vector<int> power_rotations(std::size_t slots);
/// The rotations by powers of two that make up a rotation by `steps`. Steps count modulo `slots`, and all of the result go in
/// the shorter direction: binary_steps(5, n) is {1, 4}, and binary_steps(-3, n) is {-1, -2}.
std::vector<int> binary_steps(int steps, std::size_t slots);
/// The union of binary_steps of all `rotations`, sorted. With keys for these, every one of the rotations can be composed.
std::vector<int> composing_rotations(std::span<const int> rotations, std::size_t slots);

/// For which rotations keys are made. each: for those that are asked for. minimum: for composing_rotations of them. powers:
/// for those that are asked for and for power_rotations, so that every rotation can be composed.
enum class RotationKeys : std::uint8_t { each, minimum, powers };
std::vector<int> key_rotations(std::span<const int> rotations, RotationKeys kind,
                               std::size_t slots);

/// The fewest rotations of `available` whose sum is `steps` modulo `slots`. One may come several times. Empty if `steps` is
/// 0 modulo `slots`, and if it takes more than log2(slots) of them. Of equally short ones it is always the same.
std::vector<int> fewest_rotations(int steps, std::span<const int> available, std::size_t slots);

/// The steps of a Galois element, from -N/4 + 1 to N/4: the inverse of ring::galois_element. Empty for elements that are no
/// rotation. It tries all.
std::optional<int> rotation_steps(std::size_t n, std::uint64_t element);

/// Whether these keys serve a rotation by so many slots, composed or not, at the lowest level.
bool can_rotate(const rlwe::EvaluationKeys& keys, int steps);

// The operations of Evaluator, composed if the rotation has no key of its own. They throw KeyMissing if it cannot be composed.
// Every part of a composed rotation is a key switching, and adds its noise.
Ciphertext composed_rotate(const Evaluator& e, const Ciphertext& a, int steps);
Ciphertext composed_rotate_hoisted(const Evaluator& e, const Hoisted& a, int steps);
Extended composed_rotate_extended(const Evaluator& e, const Hoisted& a, int steps);
void composed_rotate_accumulate(const Evaluator& e, Extended& acc,
                                std::span<const Extended* const> a, std::span<const int> steps);

}  // namespace jali::ckks
