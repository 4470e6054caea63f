#include "jali/backend/tfhe_resolve.h"

#include <utility>

#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/device/resolve.h"

namespace jali::backend {

std::unique_ptr<TfheOps> make_tfhe_engine(TfheConfig config, std::string device) {
  if (device == "ref") return make_ref_tfhe(std::move(config));
  const bool chosen = device != "auto";
  device = device::resolve(device).device;
  if (const auto gpu = device::gpu_number(device)) {
    device::GpuOptions options;
    options.device = *gpu;
    try {
      return make_cuda_tfhe(config, device::gpu_device(options));
    } catch (const Unsupported&) {  // of a GPU that is too old for this transform
      if (chosen) throw;
      device = "cpu";
    }
  }
  constexpr const char* kSets = "cpu/";
  if (device.starts_with(kSets)) {
    config.isa = device.substr(std::string(kSets).size());
    device = "cpu";
  }
  require<InvalidArgument>(device == "cpu", [&] {
    return "unknown device \"" + device + "\": use \"auto\", \"cpu\", \"cuda\" or \"cuda:K\"";
  });
  return make_cpu_tfhe(std::move(config));
}

}  // namespace jali::backend
