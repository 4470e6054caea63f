#include "jali/params/tfhe_presets.h"

#include <string>

#include "jali/base/error.h"

namespace jali::tfhe {

namespace {

constexpr Preset kPresets[] = {
#include "jali/params/tfhe_preset_rows.inc"
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

Literal literal_of(const Preset& preset) {
  Literal out;
  out.name = std::string(preset.name);
  out.torus = preset.torus == 32 ? Torus::t32 : Torus::t64;
  out.n = LweDimension(preset.n);
  out.k = GlweDimension(preset.k);
  out.N = PolynomialSize(preset.N);
  out.rotation = preset.rotation == "classic"     ? Rotation::classic
                 : preset.rotation == "multi_bit" ? Rotation::multi_bit
                                                  : Rotation::block_binary;
  out.group = preset.group;
  out.rotation_gadget = {preset.rotation_base_log, preset.rotation_levels};
  out.switch_gadget = {preset.switch_base_log, preset.switch_levels};
  out.lwe_noise_bits = preset.lwe_noise_bits;
  out.glwe_noise_bits = preset.glwe_noise_bits;
  out.message_bits = preset.message_bits;
  out.carry_bits = preset.carry_bits;
  out.order = preset.first == "switch_first" ? Order::switch_first : Order::bootstrap_first;
  out.max_norm2 = preset.max_norm2;
  out.log2_p_fail = preset.log2_p_fail;
  out.security = preset.security;
  return out;
}

Literal preset(std::string_view name) {
  std::string names;
  for (const Preset& p : presets()) {
    if (p.name == name) return literal_of(p);
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw InvalidArgument("no preset \"" + std::string(name) + "\": use one of " + names);
}

}  // namespace jali::tfhe
