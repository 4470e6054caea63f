#include "jali/backend/resolve.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "jali/base/error.h"
#include "jali/device/tuning.h"

namespace jali::backend {

namespace {

bool known(const std::vector<VariantFamily>& families, const std::string& family,
           const std::string& name) {
  const auto at = std::ranges::find(families, family, &VariantFamily::family);
  return at != families.end() && std::ranges::find(at->names, name) != at->names.end();
}

}  // namespace

std::vector<VariantFamily> variant_families(const std::string& device) {
  if (device::gpu_number(device)) return cuda_variants();
  if (device != "cpu") return {};
  VariantFamily isa{"isa", cpu_isas()};
  isa.names.insert(isa.names.begin(), "auto");
  return {isa};
}

Resolved resolve(const std::string& name, Word word, int log_n,
                 const device::Surroundings& around) {
  auto [device, warning] = device::resolve(name, around);
  Resolved r{std::move(device), {}, std::move(warning)};
  const auto families = variant_families(r.device);
  if (families.empty()) return r;
  const auto warn = [&r](const std::string& text) {
    r.variants.clear();
    r.warning += (r.warning.empty() ? "" : "; ") + text;
  };
  try {
    const auto tuning = device::Tuning::read(around.tuning_file);
    if (tuning.empty()) return r;  // without waking a GPU's driver for its name
    r.variants = tuning.chosen(device::hardware(r.device), std::string(word_name(word)), log_n);
  } catch (const InvalidArgument& error) {
    warn(error.what());
  }
  for (const auto& [family, variant] : r.variants) {
    if (known(families, family, variant)) continue;
    std::string why = "\"";
    why.append(variant).append("\" is no variant of \"").append(family).append("\" here");
    warn(device::Tuning::unusable(around.tuning_file, why));
    break;
  }
  return r;
}

std::unique_ptr<Engine> make_engine(Config config, std::string device) {
  if (device == "ref") return make_ref_engine(std::move(config));
  if (device == "cpu/apart") return make_apart_engine(std::move(config));
  device = device::resolve(device).device;
  if (const auto gpu = device::gpu_number(device)) {
    return make_cuda_engine(std::move(config), *gpu);
  }
  if (device.starts_with("cpu/")) {
    config.isa = device.substr(4);
  } else {
    require<NoDevice>(device == "cpu", [&] {
      return "unknown device \"" + device + "\": use \"auto\", \"cpu\" or \"cuda\"";
    });
    const auto isa = config.variants.find("isa");
    if (isa != config.variants.end() && isa->second != "auto") config.isa = isa->second;
  }
  return make_cpu_engine(std::move(config));
}

}  // namespace jali::backend
