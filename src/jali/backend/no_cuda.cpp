// Stands in for cuda/ in builds without nvcc.
#include "jali/backend/engines.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace {

[[noreturn]] void refuse() {
  throw NoDevice(
      "this build has no CUDA engine: use device=\"cpu\" or \"auto\", or build again where nvcc is "
      "found (on the PATH, in CUDA_HOME, or from PyPI)");
}

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(Config, int) { refuse(); }
std::unique_ptr<Engine> make_cuda_engine(Config, const GpuOptions&) { refuse(); }
std::unique_ptr<Engine> make_cuda_engine(Config, std::shared_ptr<device::Device>) { refuse(); }
std::unique_ptr<TfheOps> make_cuda_tfhe(TfheConfig, std::shared_ptr<device::Device>) { refuse(); }

CudaPeak cuda_peak(Word, int) { refuse(); }

std::vector<VariantFamily> cuda_variants() { return {}; }

}  // namespace jali::backend
