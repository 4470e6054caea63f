// Bytes of secret keys, in a library of their own (jali_wire_secret): servers do not link it.
#pragma once

#include <cstdint>
#include <span>

#include "jali/base/secret_vector.h"
#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/wire/frame.h"

namespace jali::wire {

/// Bytes that are wiped when they die. Copies into other containers are the caller's to protect.
using SecretBytes = SecretVector<std::uint8_t>;

/// Two bits a coefficient. Throws InvalidArgument if the key is not ternary.
SecretBytes secret_to_bytes(const rlwe::SecretKey& key, const ring::Ring& ring);

/// Into memory that is wiped. Errors as in wire/ckks.h; none tells anything of the key.
rlwe::SecretKey secret_from_bytes(std::span<const std::uint8_t> bytes,
                                  const params::CkksParamsPtr& params, const ring::Ring& ring,
                                  const Limits& limits = {});

}  // namespace jali::wire
