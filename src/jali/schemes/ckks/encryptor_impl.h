// What encryption and decryption share.
#pragma once

#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// The encryption of a plaintext: this body, with the plaintext's parameters, scale and slots.
Ciphertext with_metadata(rlwe::Ciphertext body, const Plaintext& plaintext);

/// A new random lineage. Every encryption under the public key gets one of its own.
params::Lineage fresh_lineage();

/// Throws ParamsMismatch unless a plaintext (or ciphertext) and a key have the same parameters.
void check_same(const rlwe::Params& a, const rlwe::Params& b);

}  // namespace jali::ckks
