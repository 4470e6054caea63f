// The name of the secret that a key belongs to, in the key's bytes. Every key has one; only
// ciphertexts may have none.
#pragma once

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/rlwe/key_id.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

/// Throws InvalidArgument if the name is none.
template <class Container>
void write_key_id(BasicWriter<Container>& writer, const rlwe::KeyId& id) {
  require<InvalidArgument>(!id.is_none(),
                           "cannot write a key that does not say to which secret it belongs");
  writer.raw(id.bytes);
}

/// Throws CorruptData if the name is none.
inline rlwe::KeyId read_key_id(Reader& reader) {
  rlwe::KeyId id;
  reader.copy_to(id.bytes);
  declassify(id);  // it is public, also in the bytes of a secret key
  reader.check(!id.is_none(), "it does not say to which secret key it belongs");
  return id;
}

}  // namespace jali::wire
