// TFHE parameters. A literal, which is unchecked, becomes an immutable object that is valid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jali/backend/tfhe_config.h"
#include "jali/backend/torus.h"

namespace jali::tfhe {

using backend::Gadget;
using backend::GlweDimension;
using backend::LweDimension;
using backend::PolynomialSize;
using backend::Rotation;
using backend::Torus;

/// Which ciphertexts users hold, and in which order an operation does its two halves.
enum class Order : std::uint8_t {
  switch_first = 0,  // large ones, of dimension k N: key switch, then bootstrap
  bootstrap_first = 1  // small ones, of dimension n: bootstrap, then key switch
};

/// What parameters are made of. A message lies in the highest bits of a torus word, below one bit
/// of padding: the value v is the word v 2^(w - 1 - message_bits - carry_bits).
struct Literal {
  std::string name;  // any UTF-8 without control characters
  Torus torus = Torus::t64;  // of GLWE and large LWE ciphertexts
  LweDimension n;
  GlweDimension k;
  PolynomialSize N;
  Rotation rotation = Rotation::classic;
  int group = 1;
  Gadget rotation_gadget, switch_gadget;
  /// Errors of small LWE encryptions and of the key-switching key are TUniform(lwe_noise_bits), in
  /// words of 32 bits; errors of GLWE and large LWE encryptions are TUniform(glwe_noise_bits), in
  /// words of the torus. TUniform(b) is uniform on the integers from -2^b to 2^b, with half the
  /// weight at both ends; its variance is (2^(2b+1) + 1) / 6.
  int lwe_noise_bits = 0, glwe_noise_bits = 0;
  int message_bits = 1, carry_bits = 0;  // one bit of padding lies above them
  Order order = Order::switch_first;
  /// The largest squared 2-norm of the integer weights of a linear combination of freshly
  /// bootstrapped ciphertexts for which log2_p_fail holds.
  double max_norm2 = 1;
  /// Of one bootstrapping of such a combination. At 128 bits of security and above the noise
  /// formulas must agree.
  double log2_p_fail = 0;
  /// Bits, which the security table (lwe_security.h) must grant; below 128 only with a name that
  /// begins with "insecure_".
  int security = 128;
};

/// What an engine is made for. It need not be valid.
backend::TfheConfig config_of(const Literal& literal);

/// The variance of TUniform(bits), in units of the word.
double tuniform_variance(int bits);

using ParamsHash = std::array<std::uint8_t, 32>;

/// The parameters. All sizes are known before anything is made.
class Params {
 public:
  /// Throws InsecureParams or InvalidArgument, which say what is wrong and what would fit.
  static std::shared_ptr<const Params> create(const Literal& literal);

  const Literal& literal() const { return literal_; }
  const std::string& name() const { return literal_.name; }
  Torus torus() const { return literal_.torus; }
  LweDimension n() const { return literal_.n; }
  GlweDimension k() const { return literal_.k; }
  PolynomialSize N() const { return literal_.N; }
  LweDimension large() const { return LweDimension(literal_.k.value * literal_.N.value); }
  Order order() const { return literal_.order; }
  int security() const { return literal_.security; }
  double log2_p_fail() const { return literal_.log2_p_fail; }
  double max_norm2() const { return literal_.max_norm2; }
  int message_bits() const { return literal_.message_bits; }
  int carry_bits() const { return literal_.carry_bits; }
  /// 2^message_bits: messages are 0 to message_modulus() - 1.
  std::uint64_t message_modulus() const { return std::uint64_t{1} << literal_.message_bits; }
  /// 2^(message_bits + carry_bits): what a ciphertext can hold, with its carries, is 0 to
  /// value_modulus() - 1.
  std::uint64_t value_modulus() const {
    return std::uint64_t{1} << (literal_.message_bits + literal_.carry_bits);
  }
  /// The mean of a bit of the small secret: 1/2, or 1/(group + 1) for blocks.
  double mean_bit() const { return config_of(literal_).mean_bit; }

  /// What an engine is made for. threads, isa and transform: see TfheConfig.
  backend::TfheConfig config(int threads = 1, std::string isa = {},
                             std::string transform = {}) const;

  // The ciphertexts that users hold.
  LweDimension dimension() const { return order() == Order::switch_first ? large() : n(); }
  Torus ciphertext_torus() const { return order() == Order::switch_first ? torus() : Torus::t32; }
  int noise_bits() const {
    return order() == Order::switch_first ? literal_.glwe_noise_bits : literal_.lwe_noise_bits;
  }
  /// The word that stands for the value 1 in a ciphertext of this torus: 2^(w - 1 - message_bits -
  /// carry_bits).
  std::uint64_t step(Torus torus) const {
    return std::uint64_t{1} << (backend::torus_bits(torus) - 1 - literal_.message_bits -
                                literal_.carry_bits);
  }
  std::uint64_t step() const { return step(ciphertext_torus()); }

  /// Bytes of `count` ciphertexts in memory: rows of dimension() + 1 words.
  std::size_t ciphertext_bytes(std::size_t count = 1) const;
  /// The same while their masks are a seed: one word each, and 32 bytes.
  std::size_t seeded_ciphertext_bytes(std::size_t count = 1) const;

  // Evaluation keys. Their bytes are those that they take in memory and are handed over with masks
  // as seeds; expanded, as an engine's prepare_* functions read them.
  std::size_t ggsw_count() const;  // of the bootstrapping key
  std::size_t glwe_rows() const;  // GLWE ciphertexts of the bootstrapping key
  std::size_t switch_rows() const;  // LWE ciphertexts of the key-switching key
  std::size_t packing_rows() const;  // GLWE ciphertexts of a packing key-switching key
  std::size_t rotation_key_bytes() const;
  std::size_t switch_key_bytes() const;
  std::size_t packing_key_bytes() const;
  std::size_t public_key_bytes() const;  // k N words and a seed
  /// Both keys of an evaluator, without the packing key.
  std::size_t key_bytes() const { return rotation_key_bytes() + switch_key_bytes(); }
  std::size_t expanded_key_bytes() const;

  /// SHA-256 of everything that computation depends on. The name and the claims about security and
  /// failure are not part of it.
  const ParamsHash& hash() const { return hash_; }

 private:
  explicit Params(const Literal& literal);
  Literal literal_;
  ParamsHash hash_{};
};

using ParamsPtr = std::shared_ptr<const Params>;

}  // namespace jali::tfhe
