// What an engine of TFHE is made for: dimensions, gadgets, the kind of blind rotation, and how it
// is computed.
#pragma once

#include <string>

#include "jali/backend/torus.h"

namespace jali::backend {

/// Small LWE ciphertexts have dimension n and words of 32 bits; large ones have dimension k N and
/// words of `torus`.
struct TfheConfig {
  Torus torus = Torus::t64;  // of GLWE and large LWE ciphertexts
  LweDimension n;  // in [1, 2^16], a multiple of `group`
  GlweDimension k;  // in [1, 16]
  PolynomialSize N;  // in [2^8, 2^16]
  /// Of both gadgets, base_log is in [1, 31], so that a digit fits 32 bits, and base_log * levels
  /// at most the bits of the key's words.
  Gadget rotation_gadget;  // of the bootstrapping key
  Gadget switch_gadget;  // of the key-switching key, from dimension k N to n
  Rotation rotation = Rotation::classic;
  int group = 1;  // bits of a step: 1 for classic, 2 to 4 for multi_bit, 2 to 8 for block_binary
  /// The mean of a secret bit, by which the modulus switch compensates its rounding: 1/2 for
  /// uniform bits, 1/(group + 1) for blocks.
  double mean_bit = 0.5;
  int threads = 1;  // cpu only, in [1, 1024]
  std::string isa;  // cpu only: "", "portable", "avx2", "avx512"; "" = best
  /// "fft" in double precision; "ntt" modulo primes, exact; "" = the engine's choice: "fft", or
  /// "ntt" on a GPU with few units for double precision (cuda/tfhe_transform.h). An engine's
  /// config() has the one that it took. The oracle is exact whatever it says.
  std::string transform;

  LweDimension large() const { return LweDimension(k.value * N.value); }
  std::size_t steps() const { return n.value / static_cast<std::size_t>(group); }
  /// GGSW ciphertexts of a step.
  std::size_t units() const {
    return rotation == Rotation::multi_bit ? (std::size_t{1} << group) - 1
                                           : static_cast<std::size_t>(group);
  }
  /// Words of a GGSW ciphertext in standard form.
  std::size_t ggsw_words() const {
    return (k.value + 1) * static_cast<std::size_t>(rotation_gadget.levels) * (k.value + 1) *
           N.value;
  }
};

/// The config itself, if an engine can be made for it; else throws InvalidArgument and says what is
/// wrong.
TfheConfig validated(TfheConfig config);

}  // namespace jali::backend
