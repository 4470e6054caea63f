// Named parameter sets of exact integers. Their data are in presets/discrete.toml, which
// presets.cmake turns into C++.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "jali/params/discrete/params.h"

namespace jali::discrete {

/// A table of presets/discrete.toml. By the security table all of them have at least 128 bits.
struct Preset {
  std::string_view name;
  std::string_view purpose;
  int log_n;
  int depth;
  int integers;  // 0: the modulus says it
  std::optional<std::uint64_t> modulus;  // as in Literal: 0 stands for 2^64
  Multiplication multiplication;
  Packing packing;
};

/// All of them, in the order of the file.
std::span<const Preset> presets();

/// The literal of a preset. word: that of the residues; empty: the fastest on CPUs. Throws
/// InvalidArgument, which lists the names, if there is no such preset.
Literal preset(std::string_view name, std::optional<Word> word = {});

}  // namespace jali::discrete
