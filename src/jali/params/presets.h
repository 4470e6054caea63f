// Named parameter sets. Their data are the TOML files of presets/, which presets.cmake turns into C++.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "jali/params/bootstrap_request.h"
#include "jali/params/ckks_params.h"

namespace jali::params {

/// A named literal. All are at least 128-bit secure by the table.
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

/// What a word makes of a preset: limbs of Q and of P, digits of key switching.
struct Shape {
  std::size_t limbs, special, digits;
};

/// A named bootstrapping: create_with_bootstrap of these, at 128 bits.
struct BootstrapPreset {
  std::string_view name;
  std::string_view purpose;
  int log_n;
  double precision_bits;
  int levels_after;
  double scale_bits;  // 0: what the precision needs
  BootstrapOrder order;
  std::optional<Word> word;  // empty: the device's
  Shape w32, w52;
};

/// presets/NAME.toml, which also says what each word makes of it. Times and precision: docs/bootstrapping.md. All take
/// slots to coefficients first, with which a slot's error is that of two coefficients, not of all. As scales of n16_precise
/// 43 bits would leave 32-bit words a drift of a third of a bit. 42.5 bits are the least for which n17_deep has 32-bit
/// primes at N = 2^17: 40 levels of 40 bits take more primes near 27 bits than there are.
std::span<const BootstrapPreset> bootstrap_presets();

/// The literal of a preset of either kind. word: instead of the preset's own. Throws InvalidArgument with
/// the names there are.
CkksLiteral preset(std::string_view name, std::optional<Word> word = {});

}  // namespace jali::params
