// From parameters and a device's name to a ring with an engine behind it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// device: "auto" (see device::resolve), "cuda" or
/// "cuda:K", "cpu", "cpu/portable", "cpu/avx2", "cpu/avx512", "cpu/ifma", "ref" (the slow oracle),
/// "cpu/apart" (the CPU with memory of its own, as a GPU has: for tests).
/// Throws NoDevice for a device that this build or machine lacks.
std::unique_ptr<backend::Engine> make_engine(backend::Config config, std::string device);
/// The same for the primes of params. threads >= 1, for the CPU; variants: see backend::Config; checkpoint: see ring::Ring.
std::shared_ptr<const ring::Ring> make_ring(const Params& params, const std::string& device = "cpu",
                                            int threads = 1,
                                            std::map<std::string, std::string> variants = {},
                                            Checkpoint checkpoint = {});

}  // namespace jali::ckks
