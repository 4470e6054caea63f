// Refuses keys that hide nothing, as far as this can be seen without their secret: fields that were
// never filled in, or that somebody emptied. See docs/security.md, "Untrusted bytes".
#pragma once

#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/reader.h"

namespace jali::wire {

/// Throws CorruptData if all residues of any row of b are equal, so that b is 0 or a constant
/// modulo that prime. A row of an honest key, b = -a s + e + ..., is like this with probability
/// q^-(N-1).
void check_not_constant(const Reader& reader, const ring::Poly& b);

/// Throws CorruptData if check_not_constant does, or if b, b + a or b - a has small coefficients
/// modulo any prime. They are small if s is 0, 1 or -1, and then everybody who knows a can read
/// what is encrypted. An honest key is refused with probability below 2^-128.
void check_public_key(Reader& reader, const ring::Ring& ring, const rlwe::PublicKey& key);

}  // namespace jali::wire
