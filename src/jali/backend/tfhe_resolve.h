// Which engine of TFHE a device's name means.
#pragma once

#include <memory>
#include <string>

#include "jali/backend/tfhe_ops.h"

namespace jali::backend {

/// device: "auto" (what device::resolve finds, or the CPU, if that is a GPU which the engine does
/// not serve), "cpu", "cuda" or "cuda:K", "cpu/portable", "cpu/avx2", "cpu/avx512", or "ref" (the
/// slow oracle). config.threads counts on the CPU alone. Throws NoDevice for a device that this
/// build or machine lacks, and InvalidArgument for other names.
std::unique_ptr<TfheOps> make_tfhe_engine(TfheConfig config, std::string device);

}  // namespace jali::backend
