// Levels of bootstrapping above fewer levels of a computation. See docs/math/bootstrapping.md, "Fewer levels".
#pragma once

#include <vector>

#include "jali/params/ckks_params.h"

namespace jali::params {

/// The primes of the levels that bootstrapping puts above level `depth` of a computation, the lowest first; as many levels
/// as the whole has above its own depth, each within a third of a bit as much larger than the one below as it is
/// there, and of primes that keys for the whole's level have. By rational levels, where leaving out the same primes
/// everywhere does not lead there. Empty where there are none.
std::vector<std::vector<PrimeIndex>> part_levels(const ckks::Params& whole, int depth);

}  // namespace jali::params
