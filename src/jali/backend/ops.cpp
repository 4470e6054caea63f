// What engines share.
#include "jali/backend/ops.h"

#include <algorithm>

#include "jali/random/prng.h"

namespace jali::backend {

void Ops::sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                         std::uint32_t index) const {
  random::Seed key;
  std::copy(seed.begin(), seed.end(), key.begin());
  const std::size_t n = config().n;
  const std::size_t row_bytes = n * word_bytes(config().word);
  auto* row = static_cast<std::byte*>(out.data);
  for (const PrimeIndex prime : out.primes) {
    for (std::size_t b = 0; b < out.batch; ++b, row += row_bytes) {
      random::Prng prng(key, (std::uint64_t{index} + b) << 16 | prime);
      const std::uint64_t q = config().primes[prime];
      if (config().word == Word::w32) {
        random::sample_uniform(prng, q, std::span(reinterpret_cast<std::uint32_t*>(row), n));
      } else {
        random::sample_uniform(prng, q, std::span(reinterpret_cast<std::uint64_t*>(row), n));
      }
    }
  }
}

}  // namespace jali::backend
