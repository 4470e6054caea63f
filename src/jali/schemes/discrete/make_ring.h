// The rings of rlwe/make_ring.h by the names of this scheme: what they need of the parameters is
// RLWE's.
#pragma once

#include "jali/params/discrete/params.h"
#include "jali/rlwe/make_ring.h"

namespace jali::discrete {

using rlwe::make_dry_ring;
using rlwe::make_ring;

}  // namespace jali::discrete
