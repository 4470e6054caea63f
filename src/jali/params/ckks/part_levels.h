// Levels of bootstrapping above fewer levels of a computation. See docs/math/bootstrapping.md,
// "Fewer levels".
#pragma once

#include <vector>

#include "jali/params/ckks_params.h"

namespace jali::params {

/// The primes of the levels that bootstrapping puts above level `depth` of a computation, the
/// lowest level first. There are as many as the whole parameters have above their own depth. The
/// ratio of a level to the one below is that of the whole, if possible within a third of a bit
/// (part_levels.cpp says what else is tried). Its primes are among those that the keys for the
/// whole's level have. This is for parameters in which leaving out the same primes everywhere does
/// not work. Empty if no such levels are found.
std::vector<std::vector<PrimeIndex>> part_levels(const ckks::Params& whole, int depth);

}  // namespace jali::params
