#include "jali/backend/secret/tfhe_client_checks.h"

#include <string>

#include "jali/base/error.h"

namespace jali::backend {

namespace {

// An LWE ciphertext of a configuration has at most 16 2^16 mask words.
constexpr std::size_t kMostMaskWords = std::size_t{1} << 20;

void check(bool condition, const char* operation, const char* message) {
  require<InvalidArgument>(condition, [&] { return std::string(operation) + ": " + message; });
}

void check_shape(const char* operation, Torus torus, LweDimension dimension, std::size_t count) {
  check(torus == Torus::t32 || torus == Torus::t64, operation, "words have 32 or 64 bits");
  check(dimension.value >= 1 && dimension.value <= kMostMaskWords, operation,
        "the dimension must be from 1 to 2^20");
  check(count >= 1, operation, "there is no ciphertext");
}

void check_draws(const char* operation, const Draws& draws) {
  check(draws.noise_bits >= 0 && draws.noise_bits <= 62, operation, "TUniform takes 0 to 62 bits");
}

}  // namespace

void check_encrypt_bodies(const void* out, std::size_t count, Torus torus, LweDimension dimension,
                          const std::uint8_t* secret, const std::uint64_t* messages,
                          const Draws& draws) {
  constexpr const char* kName = "encrypt_bodies";
  check(out != nullptr, kName, "the output has no data");
  check(secret != nullptr && messages != nullptr, kName, "the secret or the messages are missing");
  check_shape(kName, torus, dimension, count);
  check_draws(kName, draws);
}

void check_encrypt_gadget(const void* out, std::size_t count, const std::uint8_t* secret,
                          const GadgetBits& bits, const Draws& draws) {
  constexpr const char* kName = "encrypt_gadget";
  check(out != nullptr, kName, "the output has no data");
  check(secret != nullptr && bits.bits != nullptr, kName, "the secret or the bits are missing");
  check(count >= 1, kName, "there is no ciphertext");
  check_draws(kName, draws);
}

void check_expand(LweView out, const void* bodies) {
  constexpr const char* kName = "expand";
  check(out.data != nullptr && bodies != nullptr, kName, "the output or the bodies have no data");
  check_shape(kName, out.torus, out.dimension, out.count);
}

void check_phases(const std::uint64_t* out, ConstLweView in, const std::uint8_t* secret) {
  constexpr const char* kName = "phases";
  check(out != nullptr && in.data != nullptr, kName, "the output or the input has no data");
  check(secret != nullptr, kName, "the secret is missing");
  check_shape(kName, in.torus, in.dimension, in.count);
}

}  // namespace jali::backend
