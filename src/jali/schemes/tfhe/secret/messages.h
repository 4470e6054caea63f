// Numbers to encrypt as words of the torus.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "jali/base/secret_vector.h"
#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// The bound on values that encryption states: `largest`, or 2^message_bits - 1. Throws
/// InvalidArgument if it is not below value_modulus().
std::uint32_t checked_largest(const Params& params, std::optional<std::uint64_t> largest);

/// values[i] step(torus). Throws InvalidArgument if a value is above the bound; given: whether the
/// user chose it.
SecretVector<std::uint64_t> messages_of(const Params& params, std::span<const std::uint64_t> values,
                                        std::uint32_t bound, bool given, Torus torus);

}  // namespace jali::tfhe
