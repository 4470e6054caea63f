// Named parameter sets. Their data are the TOML files of presets/, which presets.cmake turns into
// C++.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "jali/params/ckks/bootstrap_request.h"
#include "jali/params/ckks_params.h"

namespace jali::params {

/// A named literal. By the security table all of them have at least 128 bits.
struct Preset {
  std::string_view name;
  std::string_view purpose;
  int log_n;
  int depth;
  double scale_bits;
  double integer_bits;
  std::optional<Word> word;  // empty: the default for the scale
  int dnum;  // 0: chosen
};

/// presets/without_bootstrapping.toml.
std::span<const Preset> presets();

/// What a preset is with one word: the limbs of Q and of P, and the digits of key switching.
struct Shape {
  std::size_t limbs, special, digits;
};

/// A named bootstrapping: create_with_bootstrap of these fields, at security 128.
struct BootstrapPreset {
  std::string_view name;
  std::string_view purpose;
  int log_n;
  double precision_bits;
  int levels_after;
  double scale_bits;  // 0: as many as the precision needs
  BootstrapOrder order;
  std::optional<Word> word;  // empty: that of the device
  Shape w32, w52;
};

/// The presets of presets/NAME.toml, whose other fields say what each word makes of them.
/// docs/bootstrapping.md has times and precision. All of them take slots to coefficients first,
/// because the error of a slot is then that of two coefficients and not of all. The scales were
/// chosen for 32-bit words. With 43 bits, n16_precise would have a drift of a third of a bit.
/// n17_deep needs at least 42.5 bits, because at N = 2^17 there are fewer primes near 27 bits than
/// 40 levels of 40 bits take.
std::span<const BootstrapPreset> bootstrap_presets();

/// The literal of a preset of either kind. word: replaces the preset's own. Throws InvalidArgument,
/// which lists the names, if there is no such preset.
ckks::Literal preset(std::string_view name, std::optional<Word> word = {});

}  // namespace jali::params
