#include "jali/backend/cuda/blind_rotation/rotation_kernel.cuh"

namespace jali::backend::cuda {

template struct RotationSize<9, 4>;

}  // namespace jali::backend::cuda
