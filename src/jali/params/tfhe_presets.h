// Named parameter sets of TFHE. Their data are in presets/tfhe.toml, which tools/tfhe_search makes
// and presets.cmake turns into C++. docs/tfhe-parameters.md explains them.
#pragma once

#include <span>
#include <string_view>

#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// A row of presets/tfhe.toml.
struct Preset {
  std::string_view name;
  std::string_view purpose;
  int torus;
  std::size_t n, k, N;
  std::string_view rotation;  // the name of an enumerator of Rotation
  int group;
  int rotation_base_log, rotation_levels, switch_base_log, switch_levels;
  int lwe_noise_bits, glwe_noise_bits;
  int message_bits, carry_bits;
  std::string_view first;  // the name of an enumerator of Order
  double max_norm2, log2_p_fail;
  int security;
};

/// All of them, in the order of the file. Those whose names begin with "insecure_" have less than
/// 128 bits.
std::span<const Preset> presets();

/// The literal of a preset. Throws InvalidArgument, which lists the names, if there is no such
/// preset.
Literal preset(std::string_view name);
Literal literal_of(const Preset& preset);

}  // namespace jali::tfhe
