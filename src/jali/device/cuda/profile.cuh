// The time of each kernel of a recorded graph.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "jali/device/cuda/stream.cuh"
#include "jali/device/graph.h"

namespace jali::device::cuda {

/// The name and the time of every node of the graph, in the order of recording. Each node is run
/// many times by itself.
std::vector<StepTime> step_times(const Stream& stream, cudaGraph_t graph);

}  // namespace jali::device::cuda
