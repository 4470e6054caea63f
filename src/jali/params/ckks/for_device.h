// Parameters for the kind of device that will compute with them, which chooses the word if the
// request does not. Every device computes with every word: see docs/words.md for how fast.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jali/params/ckks/bootstrap_request.h"
#include "jali/params/ckks_params.h"

namespace jali::params {

enum class DeviceKind { cpu, cuda };
/// Of "cpu", "cuda" or "cuda:1". Throws InvalidArgument for other names, "auto" too: parameters are
/// the same wherever they are made.
DeviceKind device_kind(const std::string& device);

/// ckks::Params::create, create_with_bootstrap, and ckks::Params::create of a preset. If the
/// request names no word, a GPU's is w32, unless that serves nothing or takes a larger ring than
/// the CPU's choice.
ckks::ParamsPtr create_for(DeviceKind kind, const ckks::Literal& literal,
                           const Checkpoint& checkpoint = {});
ckks::ParamsPtr create_for(DeviceKind kind, const BootstrapRequest& request,
                           const Checkpoint& checkpoint = {});
/// The preset's own word counts as named.
ckks::ParamsPtr preset_for(DeviceKind kind, std::string_view name, std::optional<Word> word = {},
                           const Checkpoint& checkpoint = {});

}  // namespace jali::params
