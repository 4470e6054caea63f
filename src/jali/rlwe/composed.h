// Rotations by any number of slots with the keys that there are. A rotation that has no key of its
// own is composed of the fewest others that have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "jali/rlwe/key_rotations.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// The fewest rotations of `available` whose sum is `steps` modulo `slots`. One may come several
/// times. Empty if `steps` is 0 modulo `slots`, and if it takes more than log2(slots) of them. Of
/// equally short ones it is always the same.
std::vector<int> fewest_rotations(int steps, std::span<const int> available, std::size_t slots);

/// The steps of a Galois element, from -N/4 + 1 to N/4: the inverse of ring::galois_element. Empty
/// for elements that are no rotation. It tries all.
std::optional<int> rotation_steps(std::size_t n, std::uint64_t element);

/// Whether these keys serve a rotation by so many slots, composed or not, at the lowest level.
bool can_rotate(const EvaluationKeys& keys, int steps);

// The operations of an evaluator, rlwe::Evaluator or a scheme's, composed if the rotation has no
// key of its own. They throw KeyMissing if it cannot be composed. Every part of a composed rotation
// is a key switching, and adds its noise.

template <class E>
typename E::Ciphertext composed_rotate(const E& e, const typename E::Ciphertext& a, int steps) {
  if (e.has_rotation(steps, a.level)) return e.rotate(a, steps);
  const std::vector<int> parts = e.composition(steps, a.level);
  typename E::Ciphertext out = e.rotate(a, parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return out;
}

template <class E>
typename E::Ciphertext composed_rotate_hoisted(const E& e, const typename E::Hoisted& a,
                                               int steps) {
  const int level = a.source->level;
  if (e.has_rotation(steps, level)) return e.rotate_hoisted(a, steps);
  const std::vector<int> parts = e.composition(steps, level);
  typename E::Ciphertext out = e.rotate_hoisted(a, parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return out;
}

template <class E>
typename E::Extended composed_rotate_extended(const E& e, const typename E::Hoisted& a, int steps) {
  const int level = a.source->level;
  if (e.has_rotation(steps, level)) return e.rotate_extended(a, steps);
  const std::vector<int> parts = e.composition(steps, level);
  typename E::Ciphertext out = e.rotate_hoisted(a, parts[0]);
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return e.rotate_extended(e.hoist(out), parts.back());
}

template <class E>
void composed_rotate_accumulate(const E& e, typename E::Extended& acc,
                                std::span<const typename E::Extended* const> a,
                                std::span<const int> steps) {
  using Extended = typename E::Extended;
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
      const Extended* one[] = {operands[k]};
      e.rotate_accumulate(sum, one, {&parts[i], 1});
      if (i == 0) {
        operands[k] = &turned.emplace_back(std::move(sum));
      } else {
        turned.back() = std::move(sum);
      }
    }
  }
  e.rotate_accumulate(acc, operands, last);
}

}  // namespace jali::rlwe
