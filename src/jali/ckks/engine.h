// From parameters and a device's name to a ring with an engine behind it.
#pragma once

#include <memory>
#include <string>

#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// device: "auto" (the first NVIDIA GPU where this build and machine have one, else the CPU), "cuda" or
/// "cuda:K", "cpu", "cpu/portable", "cpu/avx2", "cpu/avx512", "cpu/ifma", "ref" (the slow oracle),
/// "cpu/apart" (the CPU with memory of its own, as a GPU has: for tests).
/// threads >= 1, for the CPU.
/// Throws NoDevice for a device that this build or machine lacks.
std::shared_ptr<const ring::Ring> make_ring(const params::CkksParams& params,
                                            std::string device = "cpu", int threads = 1);

}  // namespace jali::ckks
