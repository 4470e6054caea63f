// Encryption under the secret key: LWE and rows of GLWE ciphertexts, with masks from a public seed.
//
// Every function writes bodies of ciphertexts [first, first + count) and may be called for disjoint ranges from several
// threads. Body i = <mask i, secret> + what is encrypted + an error. Errors are TUniform(noise_bits), those of ciphertext i
// from stream i of `errors`. No branch and no address depends on a secret, an error or what is encrypted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "jali/lwe/blocks.h"
#include "jali/lwe/secret/ntt_product.h"
#include "jali/lwe/secret/product.h"
#include "jali/random/secret_seed.h"

namespace jali::lwe {

/// messages: words of `count` ciphertexts, of which those of a torus of 32 bits take the low halves. secret: one byte a bit,
/// as many as the dimension.
void encrypt(SeededLwe& out, std::span<const std::uint8_t> secret,
             std::span<const std::uint64_t> messages, int noise_bits,
             const random::SecretSeed& errors, std::size_t first, std::size_t count);

/// The GLWE secret, as encryption takes it: k binary polynomials of N coefficients.
class GlweSecret {
 public:
  /// bits: k N of them.
  GlweSecret(Torus torus, GlweDimension k, PolynomialSize N, std::span<const std::uint8_t> bits);
  Torus torus() const { return torus_; }
  GlweDimension k() const { return GlweDimension(bits_.size() / N_.value); }
  PolynomialSize N() const { return N_; }
  std::span<const std::uint8_t> bits(std::size_t c) const {
    return bits_.subspan(c * N_.value, N_.value);
  }
  /// acc += sum_c a_c S_c, modulo 2^64 and so modulo any torus. acc: N words, a: k N. May be called from several threads.
  void add_products(std::span<std::uint64_t> acc, std::span<const std::uint64_t> a) const;

 private:
  Torus torus_;
  PolynomialSize N_;
  std::span<const std::uint8_t> bits_;  // of the secret key, which must outlive this
  std::vector<BinaryProduct>
      rotations_;  // one for each polynomial, if N is too small for transforms
  std::optional<NttProduct> transforms_;
};

/// Adds what ciphertext `row` encrypts to N words of a polynomial, whose sums are modulo 2^w.
using AddMessage = std::function<void(std::size_t row, std::span<std::uint64_t> polynomial)>;

void encrypt(SeededGlwe& out, const GlweSecret& secret, const AddMessage& message, int noise_bits,
             const random::SecretSeed& errors, std::size_t first, std::size_t count);

/// What row `row` of a GGSW ciphertext of the bit m encrypts, as torus.h defines it.
void add_ggsw_message(std::span<std::uint64_t> polynomial, std::size_t row, std::uint64_t bit,
                      const GlweSecret& secret, const backend::Gadget& gadget);

/// The phases of ciphertexts in host memory, in the low bits of the words.
void phases(std::span<std::uint64_t> out, const backend::ConstLweView& in,
            std::span<const std::uint8_t> secret);
/// The same of GLWE ciphertexts: N words each.
void phases(std::span<std::uint64_t> out, const backend::ConstGlweView& in,
            const GlweSecret& secret);

}  // namespace jali::lwe
