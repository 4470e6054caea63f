#include "jali/backend/cuda/ntt/instance.cuh"

namespace jali::backend::cuda {
JALI_INSTANTIATE_NTT(W32)
}
