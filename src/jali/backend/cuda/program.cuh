// Programs: what a function asks of an engine, recorded as a CUDA graph with its own memory.
#pragma once

#include <functional>
#include <memory>

#include "jali/backend/cuda/memory.cuh"
#include "jali/backend/ops.h"

namespace jali::backend::cuda {

/// work runs once as it is, so that the engine's constants exist and what it needs of `pool` is known, then
/// again for the recording, with blocks of a pool of its own: the graph keeps them for its life.
std::unique_ptr<Captured> record_program(std::shared_ptr<const Stream> stream,
                                         const std::shared_ptr<device::Pool>& pool,
                                         std::shared_ptr<device::Memory> memory, bool poison,
                                         const std::function<void()>& work);

}  // namespace jali::backend::cuda
