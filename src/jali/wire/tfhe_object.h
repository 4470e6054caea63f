// What the readers of TFHE's objects share.
#pragma once

#include <string>

#include "jali/base/error.h"
#include "jali/params/tfhe_params.h"
#include "jali/wire/frame.h"
#include "jali/wire/reader.h"

namespace jali::wire {

/// Throws ParamsMismatch unless the object was made for these parameters.
inline void check_hash(Kind kind, const ParamsHash& hash, const tfhe::Params& params) {
  require<ParamsMismatch>(hash == params.hash(), [&] {
    return std::string("cannot read a ") + object_name(kind.object) +
           ": it was made for other parameters; read it with those it was made for";
  });
}

/// The reader of the payload of an object of these parameters.
inline Reader open_tfhe(std::span<const std::uint8_t> bytes, Kind kind, const tfhe::Params& params,
                        const Limits& limits) {
  const Frame frame = open_frame(bytes, kind, limits);
  check_hash(kind, frame.params_hash, params);
  return Reader(frame, limits);
}

}  // namespace jali::wire
