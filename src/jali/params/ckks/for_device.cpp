#include "jali/params/ckks/for_device.h"

#include "jali/base/error.h"
#include "jali/params/ckks/presets.h"

namespace jali::params {

namespace {

/// make(word) for the word named or chosen.
template <class Make>
ckks::ParamsPtr with_word(DeviceKind kind, std::optional<Word> named, const Make& make) {
  if (kind == DeviceKind::cpu || named) return make(named);
  const auto attempt = [&](std::optional<Word> word) -> ckks::ParamsPtr {
    try {
      return make(word);
    } catch (const Error&) {
      return nullptr;
    }
  };
  const auto any = attempt(std::nullopt);
  auto fast = attempt(Word::w32);
  if (fast != nullptr && (any == nullptr || fast->log_n() <= any->log_n())) return fast;
  return any != nullptr ? any : make(std::nullopt);  // for its error
}

}  // namespace

DeviceKind device_kind(const std::string& device) {
  if (device == "cuda" || device.starts_with("cuda:")) return DeviceKind::cuda;
  require<InvalidArgument>(device == "cpu", [&] {
    return "device must be \"cpu\" or \"cuda\", the kind that will compute, not \"" + device + "\"";
  });
  return DeviceKind::cpu;
}

ckks::ParamsPtr create_for(DeviceKind kind, const ckks::Literal& literal,
                           const Checkpoint& checkpoint) {
  return with_word(kind, literal.word, [&](std::optional<Word> word) {
    ckks::Literal one = literal;
    one.word = word;
    return ckks::Params::create(one, checkpoint);
  });
}

ckks::ParamsPtr create_for(DeviceKind kind, const BootstrapRequest& request,
                           const Checkpoint& checkpoint) {
  return with_word(kind, request.word, [&](std::optional<Word> word) {
    BootstrapRequest one = request;
    one.word = word;
    return create_with_bootstrap(one, checkpoint);
  });
}

ckks::ParamsPtr preset_for(DeviceKind kind, std::string_view name, std::optional<Word> word,
                           const Checkpoint& checkpoint) {
  // A preset's sizes depend on the word: each attempt reads the preset again.
  const auto own = preset(name, word).word;
  return with_word(kind, own, [&](std::optional<Word> attempted) {
    return ckks::Params::create(preset(name, attempted), checkpoint);
  });
}

}  // namespace jali::params
