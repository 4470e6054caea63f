#include "jali/backend/seeded.h"

#include <bit>
#include <cstring>

#include "jali/random/prng.h"

namespace jali::backend {

static_assert(std::endian::native == std::endian::little,
              "masks are words with the least significant byte first");

KeyShape lwe_shape(Torus torus, LweDimension dimension, std::size_t count) {
  const std::size_t word = torus_bytes(torus);
  return {count, dimension.value * word, word};
}

KeyShape rotation_key_shape(const TfheConfig& config) {
  const std::size_t rows_of_ggsw =
      (config.k.value + 1) * static_cast<std::size_t>(config.rotation_gadget.levels);
  const std::size_t polynomial = config.N.value * torus_bytes(config.torus);
  return {config.steps() * config.units() * rows_of_ggsw, config.k.value * polynomial, polynomial};
}

KeyShape switch_key_shape(const TfheConfig& config) {
  return lwe_shape(Torus::t32, config.n,
                   config.large().value * static_cast<std::size_t>(config.switch_gadget.levels));
}

KeyShape packing_key_shape(const TfheConfig& config, LweDimension from) {
  const std::size_t polynomial = config.N.value * torus_bytes(config.torus);
  return {from.value * static_cast<std::size_t>(config.rotation_gadget.levels),
          config.k.value * polynomial, polynomial};
}

void expand_rows(void* out, std::span<const std::uint8_t, 32> seed, std::uint64_t first,
                 const void* bodies, std::size_t mask_bytes, std::size_t body_bytes,
                 std::size_t count) {
  random::Seed key;
  std::memcpy(key.data(), seed.data(), key.size());
  auto* at = static_cast<std::uint8_t*>(out);
  const auto* body = static_cast<const std::uint8_t*>(bodies);
  for (std::size_t i = 0; i < count; ++i, body += body_bytes) {
    random::Prng prng(key, first + i);
    prng.fill({at, mask_bytes});
    if (body_bytes > 0) std::memcpy(at + mask_bytes, body, body_bytes);
    at += mask_bytes + body_bytes;
  }
}

}  // namespace jali::backend
