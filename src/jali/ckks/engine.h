// From parameters and a device's name to a ring with an engine behind it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "jali/backend/config.h"
#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// A ring for the primes of params. device: see backend::make_engine. threads >= 1, for the CPU; checkpoint: see ring::Ring.
/// variants: std::nullopt for what jali tune found on this machine (backend::resolve, which also tells what to warn a user
/// of), backend::Variants{} for the engine's own choice. Throws NoDevice for a device that this build or machine lacks.
std::shared_ptr<const ring::Ring> make_ring(
    const Params& params, const std::string& device = "cpu", int threads = 1,
    std::optional<backend::Variants> variants = std::nullopt, Checkpoint checkpoint = {});

}  // namespace jali::ckks
