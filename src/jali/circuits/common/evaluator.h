// What circuits that know no scheme ask of an evaluator.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/composed.h"
#include "jali/rlwe/evaluator.h"

namespace jali::circuits {

/// An evaluator that rotates and sums: rlwe::Evaluator, on bodies, and those of the schemes. Its
/// types extend rlwe::Ciphertext and rlwe::Extended, and hold a source as rlwe::HoistedOf and
/// rlwe::RotationOf do.
template <class E>
concept Rotating =
    std::derived_from<typename E::Ciphertext, rlwe::Ciphertext> &&
    std::derived_from<typename E::Extended, rlwe::Extended> &&
    requires(const E& e, const typename E::Ciphertext& x, const typename E::Hoisted& hoisted,
             typename E::Extended& sum, std::span<const typename E::Extended* const> many,
             std::span<const typename E::Rotation> rotations,
             std::span<const backend::WeightedSum> sums, std::span<const int> steps, int r) {
      // keys
      { e.has_rotation(r, r) } -> std::same_as<bool>;
      { e.can_rotate(r, r) } -> std::same_as<bool>;
      { e.composition(r, r) } -> std::same_as<std::vector<int>>;
      { e.rotation_tree(steps, r) } -> std::same_as<std::shared_ptr<const rlwe::RotationTree>>;
      // ciphertexts
      { e.ring()->ops() } -> std::same_as<const backend::RingOps&>;
      { e.copy(x) } -> std::same_as<typename E::Ciphertext>;
      { e.rotate(x, r) } -> std::same_as<typename E::Ciphertext>;
      { e.rescale(x) } -> std::same_as<typename E::Ciphertext>;
      // hoisting, before the division by P and after it
      { e.hoist(x) } -> std::same_as<typename E::Hoisted>;
      { e.rotate_hoisted(hoisted, r) } -> std::same_as<typename E::Ciphertext>;
      { e.rotation(hoisted, r) } -> std::convertible_to<typename E::Rotation>;
      e.rotated_sums(rotations, sums);
      { e.extend(x) } -> std::same_as<typename E::Extended>;
      { e.rotate_extended(hoisted, r) } -> std::same_as<typename E::Extended>;
      e.add_inplace(sum, sum);
      e.rotate_accumulate(sum, many, steps);
      { e.reduce(sum) } -> std::same_as<typename E::Ciphertext>;
      { e.reduce_rescale(sum) } -> std::same_as<typename E::Ciphertext>;
    };

static_assert(Rotating<rlwe::Evaluator>);

}  // namespace jali::circuits
