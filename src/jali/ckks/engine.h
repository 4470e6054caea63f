// Makes the engine of a device, and a ring over it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// device: "auto" (see device::resolve), "cpu", "cuda" or "cuda:K"; "cpu/portable", "cpu/avx2", "cpu/avx512" or "cpu/ifma"
/// for one instruction set; "ref", the slow reference engine; or, for tests, "cpu/apart", a CPU engine with memory of its
/// own, like a GPU's.
/// Throws NoDevice if this build or machine lacks the device.
std::unique_ptr<backend::Engine> make_engine(backend::Config config, std::string device);
/// The ring of the primes of `params`, with an engine on `device`. threads >= 1 is the CPU engine's number of threads;
/// variants: see backend::Config; checkpoint: see ring::Ring. Throws what make_engine throws.
std::shared_ptr<const ring::Ring> make_ring(const Params& params, const std::string& device = "cpu",
                                            int threads = 1,
                                            std::map<std::string, std::string> variants = {},
                                            Checkpoint checkpoint = {});

}  // namespace jali::ckks
