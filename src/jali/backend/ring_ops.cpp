// Sampling on the host, which every engine without samplers of its own uses.
#include "jali/backend/ring_ops.h"

#include <algorithm>

#include "jali/backend/engine.h"
#include "jali/base/secret_vector.h"
#include "jali/random/prng.h"
#include "jali/random/secret_seed.h"

namespace jali::backend {

void RingOps::sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                             std::uint32_t index) const {
  const Config& config = engine().config();
  random::Seed key;
  std::copy(seed.begin(), seed.end(), key.begin());
  const std::size_t n = config.n;
  const std::size_t row_bytes = n * word_bytes(config.word);
  auto* row = static_cast<std::byte*>(out.data);
  for (const PrimeIndex prime : out.primes) {
    for (std::size_t b = 0; b < out.batch; ++b, row += row_bytes) {
      random::Prng prng(key, (std::uint64_t{index} + b) << 16 | prime);
      const std::uint64_t q = config.primes[prime];
      if (config.word == Word::w32) {
        random::sample_uniform(prng, q, std::span(reinterpret_cast<std::uint32_t*>(row), n));
      } else {
        random::sample_uniform(prng, q, std::span(reinterpret_cast<std::uint64_t*>(row), n));
      }
    }
  }
}

void RingOps::sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                           std::uint64_t stream) const {
  const random::SecretSeed key(seed);
  random::Prng prng(key.bytes(), stream);
  SecretVector<std::int64_t> values(out.batch * engine().config().n);
  if (kind == Small::ternary) {
    random::sample_ternary(prng, values);
  } else {
    random::sample_error(prng, values);
  }
  from_int64(out, values);
}

void RingOps::sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                            std::uint64_t stream) const {
  const random::SecretSeed key(seed);
  const std::size_t n = engine().config().n;
  SecretVector<std::int64_t> values(out.batch * n);
  for (std::size_t b = 0; b < out.batch; ++b) {
    random::Prng prng(key.bytes(), stream + b);
    random::sample_sparse_ternary(prng, weight, std::span(values).subspan(b * n, n));
  }
  from_int64(out, values);
}

}  // namespace jali::backend
