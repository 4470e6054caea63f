#include <utility>

#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/device/resolve.h"

namespace jali::backend {

std::unique_ptr<TfheClientOps> make_tfhe_client_engine(TfheConfig config,
                                                       const std::string& device) {
  if (device == "ref") return make_ref_tfhe_client(std::move(config));
  const std::string name = device::resolve(device).device;
  const auto gpu = device::gpu_number(name);
  require<InvalidArgument>(name == "cpu" || gpu.has_value(), [&] {
    return "a client does not compute on \"" + device + "\": use \"cpu\", \"cuda\" or \"cuda:K\"";
  });
  if (!gpu) return make_cpu_tfhe_client(std::move(config));
  device::GpuOptions options;
  options.device = *gpu;
  try {
    return make_cuda_tfhe_client(config, device::gpu_device(options));
  } catch (const Unsupported&) {  // of a GPU that is too old
    if (device != "auto") throw;
    return make_cpu_tfhe_client(std::move(config));
  }
}

}  // namespace jali::backend
