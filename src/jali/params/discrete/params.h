// Parameters of exact integers modulo T. A literal, which is unchecked, becomes an immutable object
// that is valid. docs/decisions/0072 says how moduli, levels and noise belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/base/checkpoint.h"
#include "jali/params/discrete/plain_modulus.h"
#include "jali/params/rlwe_params.h"

namespace jali::discrete {

/// How ciphertexts are multiplied. bgv: every product takes a level, and is as fast as one of CKKS.
/// bfv: a product leaves the level as it is, and takes about four times as long; levels are left
/// when the noise makes them useless. Everything else is the same.
enum class Multiplication : std::uint8_t { bgv = 0, bfv = 1 };

/// Where the numbers lie. slots: N numbers in two rows of N/2, which are added and multiplied one
/// by one and rotated along the rows. coefficients: N numbers that are added and multiplied by
/// integers, for any modulus.
enum class Packing : std::uint8_t { slots = 0, coefficients = 1 };

/// The modulus 2^64 in Literal::modulus.
inline constexpr std::uint64_t kTwoTo64 = 0;
/// The widest signed integers that a modulus is chosen for.
inline constexpr int kMostIntegers = 59;

/// What a user asks for; 0 or empty means "choose". A literal determines the parameters.
struct Literal {
  /// T. Slots need a prime below 2^50 (w52), 2^61 (w64) or 2^30 (w32) that is 1 modulo 2N.
  /// Coefficients take any number from 2 to 2^61 - 1, or a power of two up to 2^64 (kTwoTo64).
  /// Empty: as `integers` asks; without that 65537, or 786433 in rings of log_n 16 and 17.
  std::optional<std::uint64_t> modulus{};
  /// 2 to kMostIntegers: T is chosen so that signed integers of so many bits are different modulo
  /// T. 0: not asked.
  int integers = 0;
  int depth = 1;  // multiplications one after the other, 0 to 200
  Multiplication multiplication = Multiplication::bgv;
  Packing packing = Packing::slots;
  int log_n = 0;  // 10 to 17; 0: the smallest that the security table allows
  std::optional<Word> word{};  // empty: the fastest on CPUs
  int security = 128;  // 128, 192, 256; 0 only with a name that begins with "insecure_"
  int dnum = 0;  // digits of key switching at the top level; 0: choose
  /// Any UTF-8 without control characters. If security is 0, it must begin with "insecure_".
  std::string name{};
};

/// Adds to the parameters of RLWE the modulus T and the factors of the levels.
///
/// A ciphertext (c0, c1) of level l has the phase x = c0 + c1 s modulo Q_l. The centred residue w
/// of T x modulo Q_l is a small polynomial, and w = f m modulo T, where m is the message and f the
/// ciphertext's factor, a unit modulo T. Decryption is right if no coefficient of w exceeds Q_l
/// / 2. T is the product of modulus_primes(), which the ring has beside those of Q and P, or, for
/// coefficients, any number. No key depends on it.
class Params : public rlwe::Params {
 public:
  /// Checks the literal and makes every choice that it leaves open. Throws InsecureParams or
  /// InvalidArgument, which say what would fit. A search may take a second, during which
  /// `checkpoint` is called.
  static std::shared_ptr<const Params> create(const Literal& literal,
                                              const Checkpoint& checkpoint = {});

  /// Makes again what create() made, from its literal(). It looks for nothing that would fit, so
  /// that its work is bounded. Throws InvalidArgument or InsecureParams.
  static std::shared_ptr<const Params> create_written(const Literal& literal);

  /// The literal with log_n, word, dnum and the modulus written in, except a modulus that is a
  /// product of primes, which `integers` stands for. create() makes the same parameters from it.
  const Literal& literal() const { return literal_; }
  const PlainModulus& modulus() const { return modulus_; }
  Multiplication multiplication() const { return literal_.multiplication; }
  Packing packing() const { return literal_.packing; }
  /// Products one after the other that a fresh ciphertext allows.
  int depth() const { return top(); }
  std::size_t slots() const { return n(); }  // numbers in a ciphertext

  /// The primes of T; none for coefficients.
  std::span<const PrimeIndex> modulus_primes() const { return aux_primes().first(modulus_primes_); }
  /// The basis B of BFV's product at a level: the first primes of those that the ring has for it.
  /// Their product exceeds 4 N T Q_l. None for BGV.
  std::span<const PrimeIndex> product_primes(int level) const;

  /// The factor that ciphertexts of a level have if nothing else is said. A product of two of them,
  /// divided to the next level, has that of the next level.
  std::uint64_t factor(int level) const { return at(level).factor; }
  /// Q_level modulo T.
  std::uint64_t q_mod_t(int level) const { return at(level).q; }
  /// Q_from / Q_to modulo T, for a lower level `to`.
  std::uint64_t quotient(int from, int to) const;

 private:
  struct LevelFactor {
    std::uint64_t q = 0, factor = 0;
    std::size_t product_primes = 0;
  };
  Params(const rlwe::ParamsSpec& spec, const Literal& literal, std::uint64_t modulus,
         std::size_t modulus_primes);
  friend struct ParamsBuilder;
  const LevelFactor& at(int l) const {
    level(l);  // throws if it does not exist
    return factors_[static_cast<std::size_t>(l)];
  }
  Literal literal_;
  PlainModulus modulus_;
  std::size_t modulus_primes_ = 0;
  std::vector<LevelFactor> factors_;
};

using ParamsPtr = std::shared_ptr<const Params>;

}  // namespace jali::discrete
