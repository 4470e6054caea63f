// Ciphertexts inside the payload of another object, such as a message: what stands in their bytes
// between the header and the checksum.
#pragma once

#include <cstdint>

#include "jali/schemes/ckks/types.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

/// At most so many bytes are written for it.
std::uint64_t ciphertext_bytes(const ckks::Ciphertext& x);
/// Throws what to_bytes of a ciphertext throws.
void write_ciphertext(Writer& writer, const ckks::Ciphertext& x);

/// Throws what from_bytes throws. Of a ciphertext that has its seed it reads one part, and charges
/// the memory of the other: when everything has been read and checked, expand_ciphertext makes it.
ckks::Ciphertext read_ciphertext(Reader& reader, const ckks::ParamsPtr& params,
                                 const ring::Ring& ring);
void expand_ciphertext(ckks::Ciphertext& x, const ring::Ring& ring);

}  // namespace jali::wire
