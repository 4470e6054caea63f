// What encryption and decryption share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/ckks/types.h"
#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// Fresh small polynomials of the distribution `kind`, in NTT form, in memory that is wiped before
/// it is reused.
ring::Poly small_poly(const ring::Ring& ring, const random::SecretSeed& seed, std::uint64_t stream,
                      std::span<const PrimeIndex> primes, std::size_t batch, backend::Small kind);

/// A ciphertext without parts that has the plaintext's level, scale and slots.
Ciphertext shell(const Plaintext& plaintext, const rlwe::KeyId& key_id);

/// A new random lineage. Every encryption under the public key gets one of its own.
params::Lineage fresh_lineage();

/// Throws ParamsMismatch unless a plaintext (or ciphertext) and a key have the same parameters.
void check_same(const rlwe::Params& a, const rlwe::Params& b);

}  // namespace jali::ckks
