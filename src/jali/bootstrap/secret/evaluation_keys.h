// Keys of an evaluator that also bootstraps.
#pragma once

#include <span>

#include "jali/base/progress.h"
#include "jali/bootstrap/bootstrapper.h"
#include "jali/rlwe/secret/key_generator.h"

namespace jali::bootstrap {

/// plans: at least one. The keys of key_levels(), each cut to its level, and those to and from the sparse secret. progress: called after
/// each key.
rlwe::EvaluationKeys evaluation_keys(rlwe::KeyGenerator& generator, const rlwe::SecretKey& sk,
                                     std::span<const BootstrapPlan> plans,
                                     std::span<const int> rotations = {}, bool conjugate = false,
                                     const Progress& progress = {});

}  // namespace jali::bootstrap
