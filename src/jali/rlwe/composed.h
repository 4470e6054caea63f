// Rotations by any number of slots with the keys that there are. A rotation that has no key of its
// own is composed of the fewest others that have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
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

/// Several rotations of one operand that share the parts of which they are composed. Branch 0 is
/// the operand itself. Branch k + 1 is branch made[k].from, rotated by made[k].steps; branches come
/// after those of which they are made. Every edge has a key, or rotates by 0 modulo the slots.
struct RotationTree {
  struct Edge {
    std::size_t from = 0;  // a branch
    int steps = 0;
    bool operator==(const Edge&) const = default;
  };
  std::vector<Edge> made;
  std::vector<Edge> ends;  // of the rotations that are wanted, in their order
};

/// A tree in which every rotation is as short as its composition, and which has few branches: the
/// branch that leads to most of the rotations that are left comes next. composition(k): the fewest
/// rotations that make up steps[k], which are at least two; or none if it has a key or is 0 modulo
/// the slots. available: the rotations that have keys.
RotationTree rotation_tree(std::span<const int> steps,
                           std::span<const std::vector<int>> compositions,
                           std::span<const int> available, std::size_t slots);

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
typename E::Extended composed_rotate_extended(const E& e, const typename E::Hoisted& a, int steps) {
  const int level = a.source->level;
  if (e.has_rotation(steps, level)) return e.rotate_extended(a, steps);
  const std::vector<int> parts = e.composition(steps, level);
  typename E::Ciphertext out = e.rotate_hoisted(a, parts[0]);
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) out = e.rotate(out, parts[i]);
  return e.rotate_extended(e.hoist(out), parts.back());
}

/// The branches of a tree for one operand. Each takes a key switching and a ModUp, and their lifted
/// digits are kept. It cannot be copied: rotations hold addresses of its branches.
template <class E>
class Branches {
 public:
  using Ciphertext = typename E::Ciphertext;
  using Hoisted = typename E::Hoisted;

  /// root: the operand, which must outlive this. It needs no lifted digits if the tree rotates it
  /// by 0 alone.
  Branches(const E& e, const Hoisted& root, const RotationTree& tree) : root_(root) {
    for (const RotationTree::Edge& edge : tree.made) {
      const Ciphertext& turned = sources_.emplace_back(e.rotate_hoisted(at(edge.from), edge.steps));
      hoisted_.push_back(e.hoist(turned));
    }
  }
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;

  const Hoisted& at(std::size_t branch) const { return branch == 0 ? root_ : hoisted_[branch - 1]; }

 private:
  const Hoisted& root_;
  std::deque<Ciphertext> sources_;  // of hoisted_
  std::deque<Hoisted> hoisted_;
};

/// sum_k rot_{steps[k]}(a_k), for operands that come a few at a time. What goes through the same
/// branch of their tree is added up before it is rotated on, so that a branch takes one rotation
/// for all of its operands. How many of them come at a time changes no bit.
template <class E>
class RotatedSum {
 public:
  using Extended = typename E::Extended;
  using Operands = std::span<const Extended* const>;

  /// level: of the operands.
  RotatedSum(const E& e, std::span<const int> steps, int level)
      : e_(e), tree_(e.rotation_tree(steps, level)), sums_(tree_->made.size() + 1) {}

  /// Adds to the sum what is not to be rotated.
  void add_still(Extended x) {
    if (sums_[0].c0.empty()) {
      sums_[0] = std::move(x);
    } else {
      e_.add_inplace(sums_[0], x);
    }
  }

  /// Adds the operands first, first + 1 ..
  void add(std::size_t first, Operands a) {
    for (std::size_t branch = 0; branch < sums_.size(); ++branch) {
      std::vector<const Extended*> operands;
      std::vector<int> turns;
      for (std::size_t k = 0; k < a.size(); ++k) {
        const RotationTree::Edge& end = tree_->ends[first + k];
        if (end.from != branch) continue;
        operands.push_back(a[k]);
        turns.push_back(end.steps);
      }
      if (!operands.empty()) e_.rotate_accumulate(sums_[branch], operands, turns);
    }
  }

  /// The sum, of at least one operand. To be called once, at the end.
  Extended take() {
    for (std::size_t branch = sums_.size(); branch-- > 0;) {
      std::vector<const Extended*> operands;
      std::vector<int> turns;
      for (std::size_t k = branch; k < tree_->made.size(); ++k) {
        if (tree_->made[k].from != branch || sums_[k + 1].c0.empty()) continue;
        operands.push_back(&sums_[k + 1]);
        turns.push_back(tree_->made[k].steps);
      }
      if (!operands.empty()) e_.rotate_accumulate(sums_[branch], operands, turns);
    }
    return std::move(sums_[0]);
  }

 private:
  const E& e_;
  const std::shared_ptr<const RotationTree> tree_;
  std::vector<Extended> sums_;  // of the branches
};

}  // namespace jali::rlwe
