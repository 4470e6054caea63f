// The operations of rlwe/composed.h, which take the evaluator of this scheme, by its names.
#pragma once

#include "jali/rlwe/composed.h"
#include "jali/schemes/ckks/evaluator.h"

namespace jali::ckks {

using rlwe::can_rotate;
using rlwe::composed_rotate;
using rlwe::composed_rotate_extended;
using rlwe::fewest_rotations;
using rlwe::rotation_steps;

}  // namespace jali::ckks
