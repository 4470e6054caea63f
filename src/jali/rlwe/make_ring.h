// Makes the engine of a device, and a ring over it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "jali/backend/config.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"

namespace jali::rlwe {

/// The ring of the primes of `params`, with an engine on `device`. device: see
/// backend::make_engine. threads >= 1 is the CPU engine's number of threads; checkpoint: see
/// ring::Ring. variants: std::nullopt for what jali tune found on this machine (backend::resolve,
/// which also tells what to warn a user of), or backend::Variants{} for the engine's defaults.
/// Throws NoDevice if this build or machine lacks the device.
std::shared_ptr<const ring::Ring> make_ring(
    const Params& params, const std::string& device = "cpu", int threads = 1,
    std::optional<backend::Variants> variants = std::nullopt, Checkpoint checkpoint = {});

/// The ring for a dry run, whose engine computes nothing (backend/dry): results have the levels
/// that they would have on a device, and all that a scheme says of them, and no numbers.
std::shared_ptr<const ring::Ring> make_dry_ring(const Params& params, Checkpoint checkpoint = {});

}  // namespace jali::rlwe
