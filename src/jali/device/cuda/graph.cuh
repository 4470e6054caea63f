// Records what a function asks of a device as a CUDA graph with memory of its own.
#pragma once

#include <functional>
#include <memory>

#include "jali/device/buffer.h"
#include "jali/device/cuda/stream.cuh"
#include "jali/device/graph.h"

namespace jali::device::cuda {

/// work runs once without being recorded, so that the constants of its engines exist and its peak
/// use of `pool` is known. Then it runs again and is recorded, with blocks of a pool of its own,
/// which the graph keeps as long as it lives. Throws InvalidArgument inside another recording.
std::unique_ptr<Graph> record_graph(std::shared_ptr<const Stream> stream,
                                    const std::shared_ptr<device::Pool>& pool,
                                    std::shared_ptr<device::Memory> memory, bool poison,
                                    const std::function<void()>& work);

}  // namespace jali::device::cuda
