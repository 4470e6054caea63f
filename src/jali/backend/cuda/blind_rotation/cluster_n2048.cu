#include "jali/backend/cuda/blind_rotation/cluster_kernel.cuh"

namespace jali::backend::cuda {

template struct ClusterSize<11, 2, 8, 8, 1, false>;
template struct ClusterSize<11, 2, 4, 4, 2, false>;
template struct ClusterSize<11, 2, 4, 4, 3, false>;
template struct ClusterSize<11, 2, 8, 8, 1, true>;
template struct ClusterSize<11, 2, 4, 4, 1, true>;

}  // namespace jali::backend::cuda
