#include "jali/backend/cuda/blind_rotation/cluster_kernel.cuh"

namespace jali::backend::cuda {

template struct ClusterSize<9, 4, 4, 4, 1, false>;
template struct ClusterSize<9, 4, 4, 4, 2, false>;
template struct ClusterSize<9, 5, 4, 4, 1, false>;
template struct ClusterSize<9, 4, 4, 4, 1, true>;
template struct ClusterSize<9, 5, 4, 4, 1, true>;

}  // namespace jali::backend::cuda
