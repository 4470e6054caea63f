#include "jali/device/resolve.h"

#include <cstdlib>

#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/device/processor.h"
#include "jali/device/tuning.h"

namespace jali::device {

Surroundings Surroundings::here() {
  const char* const wanted = std::getenv("JALI_DEVICE");
  return {wanted == nullptr ? "" : wanted, cuda_device_count, cuda_trouble,
          device::tuning_file().string()};
}

std::optional<int> gpu_number(const std::string& name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return std::nullopt;
  const std::string number = name.substr(5);
  require<InvalidArgument>(
      !number.empty() && number.size() < 4 &&
          number.find_first_not_of("0123456789") == std::string::npos,
      [&] { return "unknown device \"" + name + "\": use \"cuda\" or \"cuda:0\""; });
  return std::stoi(number);
}

Resolved resolve(const std::string& name, const Surroundings& around) {
  Resolved r{name, {}};
  if (name == "auto") {
    if (!around.wanted.empty() && around.wanted != "auto") {
      r.device = around.wanted;
    } else if (around.gpus() > 0) {
      r.device = "cuda";
    } else {
      r.device = "cpu";
      if (const std::string trouble = around.trouble(); !trouble.empty()) {
        r.warning =
            "computing on the CPU, though there is a GPU: " + trouble + " or JALI_DEVICE=cpu";
      }
    }
  }
  if (const auto number = gpu_number(r.device)) r.device = "cuda:" + std::to_string(*number);
  return r;
}

std::string device_name(const std::string& device) {
  if (const auto gpu = gpu_number(device)) return cuda_device_name(*gpu);
  const int count = cores();
  return processor() + ", " + std::to_string(count) + (count == 1 ? " core" : " cores");
}

}  // namespace jali::device
