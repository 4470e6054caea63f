// The keys of an evaluator that also bootstraps.
#pragma once

#include <span>

#include "jali/base/progress.h"
#include "jali/bootstrap/bootstrapper.h"
#include "jali/rlwe/secret/key_generator.h"

namespace jali::bootstrap {

/// The keys of key_levels(), each made for its level only, and the encapsulation keys, which switch
/// to and from the sparse secret. progress: called after each key. Throws InvalidArgument without a
/// plan.
rlwe::EvaluationKeys evaluation_keys(rlwe::KeyGenerator& generator, const rlwe::SecretKey& sk,
                                     std::span<const BootstrapPlan> plans,
                                     std::span<const int> rotations = {}, bool conjugate = false,
                                     const Progress& progress = {});

}  // namespace jali::bootstrap
