// Plaintexts and ciphertexts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/base/secret_vector.h"
#include "jali/params/discrete/estimate.h"
#include "jali/params/discrete/noise.h"
#include "jali/params/discrete/params.h"
#include "jali/rlwe/ciphertext.h"

namespace jali::discrete {

/// Encoded numbers, at no level. Encoder makes what operations need of it.
struct Plaintext {
  ParamsPtr params;
  /// In slots: the polynomial whose values are the numbers, modulo the primes of T, in NTT form and
  /// in memory that is wiped.
  ring::Poly poly;
  /// In coefficients: the numbers modulo T, centred, N for each vector of the batch.
  SecretVector<std::int64_t> coefficients;
  std::size_t batch = 1;
  Range range{};  // of all numbers, also of those that fill a vector up
};

/// parts[0] + parts[1] s = x, modulo the primes of `level`; discrete::Params says what x holds.
struct Ciphertext : rlwe::Ciphertext {
  ParamsPtr params;
  std::uint64_t factor = 1;  // f of discrete::Params, a unit modulo T
  Estimate estimate{};
};

/// What operations know of a ciphertext.
inline Known known(const Ciphertext& a) { return {a.level, a.factor, a.estimate}; }

}  // namespace jali::discrete
