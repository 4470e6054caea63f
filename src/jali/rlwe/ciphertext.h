// The bodies of plaintexts and ciphertexts: what all schemes of RLWE have in common. A scheme's own
// types extend them by what it knows of its messages.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "jali/random/prng.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/key_id.h"

namespace jali::rlwe {

struct Plaintext {
  ring::Poly poly;  // NTT form over the primes of `level`, in memory that is wiped
  int level = 0;
};

/// parts[0] + parts[1] s (+ parts[2] s^2) is the phase, modulo the primes of `level`: the scheme's
/// encoding of a message, plus an error.
struct Ciphertext {
  KeyId key_id;  // of the secret s
  std::vector<ring::Poly> parts;  // 2, or 3 before relinearisation; NTT form
  int level = 0;
  /// A fresh encryption under the secret key keeps the seed of its uniform part, so that its bytes
  /// are half as many. Every operation drops the seed.
  std::optional<random::Seed> seed;

  std::size_t batch() const { return parts.empty() ? 0 : parts[0].batch(); }
  Ciphertext& body() { return *this; }
  const Ciphertext& body() const { return *this; }
};

}  // namespace jali::rlwe
