#include "jali/backend/cuda/blind_rotation/cluster_kernel.cuh"

namespace jali::backend::cuda {

template struct ClusterSize<12, 2, 4, 16, 1, false>;
template struct ClusterSize<13, 2, 4, 16, 1, false>;
template struct ClusterSize<14, 2, 8, 16, 1, false>;

}  // namespace jali::backend::cuda
