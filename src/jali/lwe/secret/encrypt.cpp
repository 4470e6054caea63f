#include "jali/lwe/secret/encrypt.h"

#include "jali/backend/secret/lwe_rows.h"
#include "jali/base/error.h"

namespace jali::lwe {

void encrypt(SeededLwe& out, std::span<const std::uint8_t> secret,
             std::span<const std::uint64_t> messages, int noise_bits,
             const random::SecretSeed& errors, std::size_t first, std::size_t count) {
  const std::size_t word = backend::torus_bytes(out.torus);
  require<InternalError>(secret.size() == out.dimension.value && messages.size() == count &&
                             first + count <= out.count && out.bodies.bytes() >= out.count * word,
                         "encrypt: another dimension or number of messages");
  backend::encrypt_lwe_bodies(static_cast<std::byte*>(out.bodies.data()) + first * word, count,
                              out.torus, out.dimension, secret.data(), messages.data(),
                              {out.seed, errors.bytes(), noise_bits, first});
}

void phases(std::span<std::uint64_t> out, const backend::ConstLweView& in,
            std::span<const std::uint8_t> secret) {
  require<InternalError>(out.size() == in.count && secret.size() == in.dimension.value,
                         "phases: another dimension or number of ciphertexts");
  backend::lwe_phases(out.data(), in, secret.data());
}

}  // namespace jali::lwe
