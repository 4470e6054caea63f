// Stands in for cuda/ in builds without nvcc.
#include "jali/backend/engines.h"
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

CudaPeak cuda_peak(Word, int) { refuse(); }

std::vector<VariantFamily> cuda_variants() { return {}; }

bool has_cuda() { return false; }

int cuda_device_count() { return 0; }

std::string cuda_trouble() { return {}; }

std::string cuda_device_name(int) { return {}; }

}  // namespace jali::backend
