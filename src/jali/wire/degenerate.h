// Keys that hide nothing, as far as that can be seen without their secret: fields that were never filled in, or that
// somebody emptied. See docs/security.md, "Untrusted bytes".
#pragma once

#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/reader.h"

namespace jali::wire {

/// Throws CorruptData if the residues of any row of b are all equal: b is 0 or a constant modulo that prime. Of an honest
/// key, b = -a s + e + .., a row is so with probability q^-(N-1).
void check_not_constant(const Reader& reader, const ring::Poly& b);

/// Throws for the same reason, and also if b, b + a or b - a has small coefficients modulo any prime, which is so if s is
/// 0, 1 or -1. Everybody who knows a could then read what is encrypted. An honest key is refused with probability below
/// 2^-128.
void check_public_key(Reader& reader, const ring::Ring& ring, const rlwe::PublicKey& key);

}  // namespace jali::wire
