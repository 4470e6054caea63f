// Which secret key an object belongs to.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "jali/base/error.h"

namespace jali {

/// The name of a secret key: 16 random bytes that are drawn when the key is made, and that do not
/// depend on the key. They are public. The secret key, its public and evaluation keys and every
/// ciphertext under it carry them, so that keys and ciphertexts of two clients are not mixed by
/// mistake. They prove nothing: whoever sends bytes can write any name there.
///
/// Zero stands for no key: a ciphertext that anybody can read, as one without noise and mask. It
/// may be combined with ciphertexts of every key.
struct KeyId {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const KeyId&) const = default;
  bool is_none() const { return *this == KeyId{}; }
};

/// Whether objects of these two may be combined: they name the same key, or one of them names none.
inline bool agree(const KeyId& a, const KeyId& b) { return a == b || a.is_none() || b.is_none(); }

/// The key of what is computed from ciphertexts of these two. Throws KeyMismatch if they name
/// different keys.
inline KeyId common_key(const KeyId& a, const KeyId& b) {
  require<KeyMismatch>(agree(a, b),
                       "the operands belong to different secret keys, and no key decrypts what "
                       "would be computed from both: use ciphertexts of one client");
  return a.is_none() ? b : a;
}

/// 32 hexadecimal digits; empty for no key.
std::string to_string(const KeyId& id);

}  // namespace jali
