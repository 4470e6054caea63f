#include "jali/params/tfhe_params.h"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "jali/base/error.h"
#include "jali/params/canonical.h"
#include "jali/params/lwe_security.h"
#include "jali/params/name.h"
#include "jali/params/tfhe_noise.h"

namespace jali::tfhe {

namespace {

constexpr std::size_t kSeedBytes = 32;
constexpr std::size_t kMaxLweDimension = std::size_t{1} << 16;
constexpr std::size_t kMaxGlweDimension = 16;

std::string text(std::size_t x) { return std::to_string(x); }

/// Throws InvalidArgument unless low <= value <= high.
template <class T>
void in_range(const char* name, T value, T low, T high) {
  require<InvalidArgument>(value >= low && value <= high, [&] {
    return std::string(name) + " must be " + std::to_string(low) + " to " + std::to_string(high) +
           ", not " + std::to_string(value);
  });
}

void check_gadget(const char* name, const Gadget& gadget, int bits) {
  require<InvalidArgument>(
      gadget.base_log >= 1 && gadget.base_log <= 31 && gadget.levels >= 1 &&
          gadget.levels <= bits && gadget.base_log * gadget.levels <= bits,
      [&] {
        return std::string(name) + " has " + std::to_string(gadget.levels) + " levels of " +
               std::to_string(gadget.base_log) +
               " bits: use 1 to 31 bits, at least 1 level, and a product of at most " +
               std::to_string(bits) + ", the bits of a word";
      });
}

void check_rotation(const Literal& literal) {
  const int least = literal.rotation == Rotation::classic ? 1 : 2;
  const int most = literal.rotation == Rotation::classic     ? 1
                   : literal.rotation == Rotation::multi_bit ? 4
                                                             : 8;
  require<InvalidArgument>(literal.rotation == Rotation::classic ||
                               literal.rotation == Rotation::multi_bit ||
                               literal.rotation == Rotation::block_binary,
                           "rotation must be classic, multi_bit or block_binary");
  in_range("group, the secret bits of a step of the rotation,", literal.group, least, most);
  require<InvalidArgument>(literal.n.value % static_cast<std::size_t>(literal.group) == 0, [&] {
    return "n is " + text(literal.n.value) + ", which is not a multiple of group " +
           std::to_string(literal.group) + ": use the next multiple, and group 1 for classic";
  });
}

void check(const Literal& literal) {
  require<InvalidArgument>(params::is_name(literal.name) && literal.name.size() <= 255,
                           "a name must be UTF-8 of at most 255 bytes, without control characters");
  require<InvalidArgument>(literal.torus == Torus::t32 || literal.torus == Torus::t64,
                           "the torus must have 32 or 64 bits");
  in_range("n, the dimension of small LWE ciphertexts,", literal.n.value, std::size_t{1},
           kMaxLweDimension);
  in_range("k, the dimension of GLWE ciphertexts,", literal.k.value, std::size_t{1},
           kMaxGlweDimension);
  require<InvalidArgument>(
      std::has_single_bit(literal.N.value) && literal.N.value >= 256 && literal.N.value <= 65536,
      [&] {
        return "N, the size of polynomials, must be a power of two from 256 "
               "to 65536, not " +
               text(literal.N.value);
      });
  check_rotation(literal);
  const int bits = backend::torus_bits(literal.torus);
  check_gadget("rotation_gadget", literal.rotation_gadget, bits);
  check_gadget("switch_gadget", literal.switch_gadget, 32);
  in_range("lwe_noise_bits", literal.lwe_noise_bits, 0, 30);
  in_range("glwe_noise_bits", literal.glwe_noise_bits, 0, bits - 2);
  in_range("message_bits", literal.message_bits, 1, 16);
  in_range("carry_bits", literal.carry_bits, 0, 16);
  const int value_bits = literal.message_bits + literal.carry_bits;
  require<InvalidArgument>((std::size_t{1} << value_bits) <= literal.N.value / 2, [&] {
    return "message_bits and carry_bits are " + std::to_string(value_bits) +
           " together, and a table for them needs at least two coefficients for each value: use N "
           "of at least " +
           text(std::size_t{2} << value_bits);
  });
  require<InvalidArgument>(
      literal.order == Order::switch_first || literal.order == Order::bootstrap_first,
      "order must be switch_first or bootstrap_first");
  require<InvalidArgument>(std::isfinite(literal.max_norm2) && literal.max_norm2 >= 1,
                           "max_norm2 must be at least 1: a freshly bootstrapped ciphertext must "
                           "be one that can be bootstrapped");
  require<InvalidArgument>(std::isfinite(literal.log2_p_fail) && literal.log2_p_fail <= 0,
                           "log2_p_fail must be a finite number of at most 0");
  in_range("security", literal.security, 0, 1024);
  require<InsecureParams>(literal.security >= 128 || literal.name.starts_with("insecure_"), [&] {
    return "these parameters have " + std::to_string(literal.security) +
           " bits of security: use a preset of 128 bits, or a name that begins with "
           "\"insecure_\" if you know what that means";
  });
}

/// Holds what a literal claims against the security table, and the noise formulas unless its name
/// says that it is insecure.
void check_claims(const Literal& literal) {
  if (literal.security == 0) return;
  const double bits = key_security(literal).bits();
  require<InsecureParams>(literal.security <= bits, [&] {
    return "these parameters claim " + std::to_string(literal.security) +
           " bits of security, and the security table grants " +
           std::to_string(static_cast<int>(bits)) +
           ": use a preset, larger dimensions, or more noise";
  });
  if (literal.security < 128) return;
  // Half of the last digit that presets are written with, and a little.
  constexpr double kRounding = 0.01;
  const double fails = jali::tfhe::log2_p_fail(literal);
  require<InvalidArgument>(fails <= literal.log2_p_fail + kRounding, [&] {
    return "these parameters claim that a bootstrapping fails with probability 2^" +
           std::to_string(literal.log2_p_fail) + ", and the noise formulas give 2^" +
           std::to_string(fails) + ": lower max_norm2, or state that probability";
  });
}

/// SHA-256 of everything that computation depends on.
ParamsHash hash_of(const Literal& literal) {
  params::Canonical bytes;
  // "TFHE" and the version of this list, so that no hash is one of another scheme's parameters.
  bytes.put(std::uint64_t{0x45484654});
  bytes.put(std::uint64_t{1});
  for (const std::size_t x : {literal.n.value, literal.k.value, literal.N.value})
    bytes.put(std::uint64_t{x});
  for (const int x : {backend::torus_bits(literal.torus), static_cast<int>(literal.rotation),
                      literal.group, literal.rotation_gadget.base_log,
                      literal.rotation_gadget.levels, literal.switch_gadget.base_log,
                      literal.switch_gadget.levels, literal.lwe_noise_bits, literal.glwe_noise_bits,
                      literal.message_bits, literal.carry_bits, static_cast<int>(literal.order)}) {
    bytes.put(static_cast<std::uint64_t>(x));
  }
  bytes.put(literal.max_norm2);
  return bytes.digest();
}

}  // namespace

backend::TfheConfig config_of(const Literal& literal) {
  backend::TfheConfig out;
  out.torus = literal.torus;
  out.n = literal.n;
  out.k = literal.k;
  out.N = literal.N;
  out.rotation_gadget = literal.rotation_gadget;
  out.switch_gadget = literal.switch_gadget;
  out.rotation = literal.rotation;
  out.group = literal.group;
  out.mean_bit = literal.rotation == Rotation::block_binary ? 1.0 / (literal.group + 1) : 0.5;
  return out;
}

double tuniform_variance(int bits) { return (std::ldexp(1.0, 2 * bits + 1) + 1) / 6; }

Params::Params(const Literal& literal) : literal_(literal), hash_(hash_of(literal)) {}

ParamsPtr Params::create(const Literal& literal) {
  check(literal);
  check_claims(literal);
  return ParamsPtr(new Params(literal));
}

backend::TfheConfig Params::config(int threads, std::string isa, std::string transform) const {
  backend::TfheConfig out = config_of(literal_);
  out.threads = threads;
  out.isa = std::move(isa);
  out.transform = std::move(transform);
  return out;
}

std::size_t Params::ciphertext_bytes(std::size_t count) const {
  return count * (dimension().value + 1) * backend::torus_bytes(ciphertext_torus());
}

std::size_t Params::seeded_ciphertext_bytes(std::size_t count) const {
  return kSeedBytes + count * backend::torus_bytes(ciphertext_torus());
}

std::size_t Params::ggsw_count() const {
  const backend::TfheConfig sizes = config();
  return sizes.steps() * sizes.units();
}

std::size_t Params::glwe_rows() const {
  return ggsw_count() * (k().value + 1) * static_cast<std::size_t>(literal_.rotation_gadget.levels);
}

std::size_t Params::switch_rows() const {
  return large().value * static_cast<std::size_t>(literal_.switch_gadget.levels);
}

std::size_t Params::packing_rows() const {
  return dimension().value * static_cast<std::size_t>(literal_.rotation_gadget.levels);
}

std::size_t Params::rotation_key_bytes() const {
  return kSeedBytes + glwe_rows() * N().value * backend::torus_bytes(torus());
}

std::size_t Params::switch_key_bytes() const {
  return kSeedBytes + switch_rows() * backend::torus_bytes(Torus::t32);
}

std::size_t Params::packing_key_bytes() const {
  return kSeedBytes + packing_rows() * N().value * backend::torus_bytes(torus());
}

std::size_t Params::public_key_bytes() const {
  return kSeedBytes + large().value * backend::torus_bytes(torus());
}

std::size_t Params::expanded_key_bytes() const {
  return glwe_rows() * (k().value + 1) * N().value * backend::torus_bytes(torus()) +
         switch_rows() * (n().value + 1) * backend::torus_bytes(Torus::t32);
}

}  // namespace jali::tfhe
