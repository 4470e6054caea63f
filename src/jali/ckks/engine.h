// From parameters and a device's name to a ring with an engine behind it.
#pragma once

#include <memory>
#include <string>

#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// device: "auto" (the CPU, until the CUDA engine is tuned), "cpu", "cpu/portable", "cpu/avx2",
/// "cpu/avx512", "cpu/ifma", "ref" (the slow oracle), "cuda" or "cuda:K" (an NVIDIA GPU).
/// threads >= 1, for the CPU.
/// Throws NoDevice for a device that this build or machine lacks.
std::shared_ptr<const ring::Ring> make_ring(const params::CkksParams& params,
                                            const std::string& device = "cpu", int threads = 1);

}  // namespace jali::ckks
