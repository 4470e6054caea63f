// Which engine of TFHE a device's name means.
#pragma once

#include <memory>
#include <string>

#include "jali/backend/tfhe_ops.h"

namespace jali::backend {

/// device: "auto" or "cpu" (the CPU: see decision 0024), "cuda" or "cuda:K", "cpu/portable", "cpu/avx2", "cpu/avx512", or
/// "ref" (the slow oracle). config.threads counts on the CPU alone. Throws NoDevice for a device that this build or machine lacks, and
/// InvalidArgument for other names.
std::unique_ptr<TfheOps> make_tfhe_engine(TfheConfig config, std::string device);

}  // namespace jali::backend
