// What a function asks of a device, recorded as a CUDA graph with its own memory.
#pragma once

#include <functional>
#include <memory>

#include "jali/device/buffer.h"
#include "jali/device/cuda/stream.cuh"
#include "jali/device/graph.h"

namespace jali::device::cuda {

/// work runs once as it is, so that its engines' constants exist and what it needs of `pool` is known, then again for the recording, with blocks of a pool of its own: the graph keeps them for its life.
std::unique_ptr<Graph> record_graph(std::shared_ptr<const Stream> stream,
                                    const std::shared_ptr<device::Pool>& pool,
                                    std::shared_ptr<device::Memory> memory, bool poison,
                                    const std::function<void()>& work);

}  // namespace jali::device::cuda
