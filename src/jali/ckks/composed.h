// Rotations by any number of slots with the keys that there are. A rotation that has no key of its
// own is composed of the fewest others that have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jali/ckks/evaluator.h"
#include "jali/ckks/key_rotations.h"
#include "jali/rlwe/keys.h"

namespace jali::ckks {

/// The fewest rotations of `available` whose sum is `steps` modulo `slots`. One may come several
/// times. Empty if `steps` is 0 modulo `slots`, and if it takes more than log2(slots) of them. Of
/// equally short ones it is always the same.
std::vector<int> fewest_rotations(int steps, std::span<const int> available, std::size_t slots);

/// The steps of a Galois element, from -N/4 + 1 to N/4: the inverse of ring::galois_element. Empty
/// for elements that are no rotation. It tries all.
std::optional<int> rotation_steps(std::size_t n, std::uint64_t element);

/// Whether these keys serve a rotation by so many slots, composed or not, at the lowest level.
bool can_rotate(const rlwe::EvaluationKeys& keys, int steps);

// The operations of Evaluator, composed if the rotation has no key of its own. They throw
// KeyMissing if it cannot be composed. Every part of a composed rotation is a key switching, and
// adds its noise.
Ciphertext composed_rotate(const Evaluator& e, const Ciphertext& a, int steps);
Ciphertext composed_rotate_hoisted(const Evaluator& e, const Hoisted& a, int steps);
Extended composed_rotate_extended(const Evaluator& e, const Hoisted& a, int steps);
void composed_rotate_accumulate(const Evaluator& e, Extended& acc,
                                std::span<const Extended* const> a, std::span<const int> steps);

}  // namespace jali::ckks
