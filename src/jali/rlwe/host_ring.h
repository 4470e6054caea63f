// A ring on the CPU, for programs that know no other device: nothing here leads to a GPU or to the
// other engines.
#pragma once

#include <memory>

#include "jali/backend/config.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"

namespace jali::rlwe {

/// What an engine has to know of the parameters.
backend::Config engine_config(const Params& params);

/// As make_ring with the device "cpu" and no tuning.
std::shared_ptr<const ring::Ring> make_host_ring(const Params& params, int threads = 1,
                                                 Checkpoint checkpoint = {});

}  // namespace jali::rlwe
