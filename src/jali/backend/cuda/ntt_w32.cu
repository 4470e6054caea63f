#include "jali/backend/cuda/ntt_instance.cuh"

namespace jali::backend::cuda {
JALI_INSTANTIATE_NTT(W32)
}
