// The time of each kernel of a recorded graph.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "jali/backend/cuda/memory.cuh"
#include "jali/backend/ops.h"

namespace jali::backend::cuda {

/// Every node of the graph by name, in the order of recording, each run over and over by itself.
std::vector<StepTime> step_times(const Stream& stream, cudaGraph_t graph);

}  // namespace jali::backend::cuda
