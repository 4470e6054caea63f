#include "jali/device/resolve.h"

#include <cstdlib>

#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/device/tuning.h"

namespace jali::device {

Surroundings Surroundings::here() {
  const char* const wanted = std::getenv("JALI_DEVICE");
  return {wanted == nullptr ? "" : wanted, cuda_device_count(), cuda_trouble(),
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
  Resolved r{name, {}, {}};
  if (name == "auto") {
    if (!around.wanted.empty() && around.wanted != "auto") {
      r.device = around.wanted;
    } else if (around.gpus > 0) {
      r.device = "cuda";
    } else {
      r.device = "cpu";
      if (!around.trouble.empty()) {
        r.warning = "computing on the CPU, though there is a GPU: " + around.trouble +
                    " or JALI_DEVICE=cpu";
      }
    }
  }
  if (const auto number = gpu_number(r.device)) r.device = "cuda:" + std::to_string(*number);
  return r;
}

Resolved resolve(const std::string& name, const std::string& word, int log_n,
                 const Surroundings& around) {
  Resolved r = resolve(name, around);
  if (r.device != "cpu" && !gpu_number(r.device)) return r;
  try {
    r.variants = Tuning::read(around.tuning_file).chosen(hardware(r.device), word, log_n);
  } catch (const Error& error) {
    r.warning += (r.warning.empty() ? "" : "; ") + std::string(error.what());
  }
  if (const auto isa = r.variants.find("isa"); isa != r.variants.end()) {
    r.device += "/" + isa->second;
    r.variants.erase(isa);
  }
  return r;
}

}  // namespace jali::device
