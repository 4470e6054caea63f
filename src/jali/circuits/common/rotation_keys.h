// Refuses circuits whose rotations have no keys.
#pragma once

#include <functional>
#include <span>

#include "jali/circuits/common/evaluator.h"

namespace jali::circuits {

/// Throws KeyMissing, which names every rotation of `needed` that is not served. what: the circuit,
/// for the message.
void require_served(std::span<const int> needed, const char* what,
                    const std::function<bool(int)>& served);

/// Every rotation that the evaluator's keys neither serve at this level nor compose is missing.
template <Rotating E>
void require_rotations(const E& evaluator, std::span<const int> needed, const char* what,
                       int level = 0) {
  require_served(needed, what, [&](int r) { return evaluator.can_rotate(r, level); });
}

/// The same for rotations that must have keys of their own.
template <Rotating E>
void require_rotation_keys(const E& evaluator, std::span<const int> needed, const char* what,
                           int level = 0) {
  require_served(needed, what, [&](int r) { return evaluator.has_rotation(r, level); });
}

}  // namespace jali::circuits
