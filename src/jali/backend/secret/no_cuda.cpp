// Stands in for cuda/secret/ in builds without nvcc.
#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/base/error.h"

namespace jali::backend {

std::unique_ptr<TfheClientOps> make_cuda_tfhe_client(TfheConfig /*config*/,
                                                     std::shared_ptr<device::Device> /*device*/) {
  throw NoDevice(
      "this build has no CUDA engine: use device=\"cpu\", or build again where nvcc is found (on "
      "the PATH, in CUDA_HOME, or from PyPI)");
}

}  // namespace jali::backend
