// Which keys a set of rotations takes.
#pragma once

#include <cstddef>
#include <map>

#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// The demand of rotations, each with the highest level of its key, of conjugation and of products.
/// Rotations that are equal modulo the number of slots share a key, which serves the highest of
/// their levels, and a rotation by 0 needs none. A level of -1 stands for every level, and kNoKey
/// for no key.
KeyDemand demand_of(std::size_t n, const std::map<int, int>& rotations, int conjugate,
                    int relinearise);

}  // namespace jali::rlwe
