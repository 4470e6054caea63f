#include "jali/params/ckks/presets.h"

#include <string>

#include "jali/base/error.h"

namespace jali::params {
namespace {

constexpr Preset kPresets[] = {
#include "jali/params/preset_rows.inc"
};
constexpr BootstrapPreset kBootstrapPresets[] = {
#include "jali/params/bootstrap_preset_rows.inc"
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }
std::span<const BootstrapPreset> bootstrap_presets() { return kBootstrapPresets; }

ckks::Literal preset(std::string_view name, std::optional<Word> word) {
  std::string names;
  for (const Preset& p : presets()) {
    if (p.name == name) {
      ckks::Literal literal;
      literal.log_n = p.log_n;
      literal.depth = p.depth;
      literal.scale_bits = p.scale_bits;
      literal.integer_bits = p.integer_bits;
      literal.word = word ? word : p.word;
      literal.dnum = p.dnum;
      literal.name = std::string(p.name);
      return literal;
    }
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  for (const BootstrapPreset& p : bootstrap_presets()) {
    if (p.name == name) {
      BootstrapRequest request;
      request.precision_bits = p.precision_bits;
      request.levels_after = p.levels_after;
      request.order = p.order;
      request.scale_bits = p.scale_bits;
      request.name = std::string(p.name);
      request.word = word ? word : p.word;
      return bootstrap_literal(request, p.log_n);
    }
    names += ", " + std::string(p.name);
  }
  throw InvalidArgument("no preset \"" + std::string(name) + "\": use one of " + names);
}

}  // namespace jali::params
