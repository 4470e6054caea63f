// The time of each kernel of a recorded graph.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "jali/device/cuda/stream.cuh"
#include "jali/device/graph.h"

namespace jali::device::cuda {

/// Every node of the graph by name, in the order of recording, each run over and over by itself.
std::vector<StepTime> step_times(const Stream& stream, cudaGraph_t graph);

}  // namespace jali::device::cuda
