#include "jali/params/discrete/presets.h"

#include <string>

#include "jali/base/error.h"

namespace jali::discrete {
namespace {

constexpr Preset kPresets[] = {
#include "jali/params/discrete_preset_rows.inc"
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

Literal preset(std::string_view name, std::optional<Word> word) {
  std::string names;
  for (const Preset& p : presets()) {
    if (p.name == name) {
      Literal literal;
      literal.modulus = p.modulus;
      literal.integers = p.integers;
      literal.depth = p.depth;
      literal.multiplication = p.multiplication;
      literal.packing = p.packing;
      literal.log_n = p.log_n;
      literal.word = word;
      literal.name = std::string(p.name);
      return literal;
    }
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw InvalidArgument("no preset \"" + std::string(name) + "\": use one of " + names);
}

}  // namespace jali::discrete
