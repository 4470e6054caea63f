// LWE encryption under the secret key and phases, in host memory, for code that has no engine
// (backend/secret/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/lwe/blocks.h"
#include "jali/random/secret_seed.h"

namespace jali::lwe {

/// Writes the bodies of ciphertexts [first, first + count); may be called for disjoint ranges from
/// several threads. messages: words of `count` ciphertexts, of which those of a torus of 32 bits
/// take the low halves. secret: one byte a bit, as many as the dimension. Errors are
/// TUniform(noise_bits), that of ciphertext i from stream i of `errors`.
void encrypt(SeededLwe& out, std::span<const std::uint8_t> secret,
             std::span<const std::uint64_t> messages, int noise_bits,
             const random::SecretSeed& errors, std::size_t first, std::size_t count);

/// The phases of ciphertexts in host memory, in the low bits of the words.
void phases(std::span<std::uint64_t> out, const backend::ConstLweView& in,
            std::span<const std::uint8_t> secret);

}  // namespace jali::lwe
