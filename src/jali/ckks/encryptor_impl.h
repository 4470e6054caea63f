// What encryption and decryption share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/ckks/types.h"
#include "jali/random/secret_seed.h"
#include "jali/ring/poly.h"

namespace jali::ckks {

/// Fresh small polynomials of the distribution `kind`, NTT form, in memory that is wiped block by block.
ring::Poly small_poly(const ring::Ring& ring, const random::SecretSeed& seed, std::uint64_t stream,
                      std::span<const PrimeIndex> primes, std::size_t batch, backend::Small kind);

/// A ciphertext of the plaintext's level, scale and slots, without parts.
Ciphertext shell(const Plaintext& plaintext);

/// A lineage of its own for every encryption.
params::Lineage fresh_lineage();

/// Throws ParamsMismatch unless a plaintext (or ciphertext) and a key have the same parameters.
void check_same(const CkksParamsPtr& a, const CkksParamsPtr& b);

}  // namespace jali::ckks
