// The embedding on the host, joined to the ring's integers.
#include "jali/backend/embedding_ops.h"

#include <cstdint>
#include <vector>

#include "jali/backend/engine.h"
#include "jali/backend/ring_ops.h"
#include "jali/base/secret_vector.h"

namespace jali::backend {

void EmbeddingOps::embed(View out, const Embedding& embedding, std::span<const Complex> values,
                         int log_slots, double factor) const {
  const std::size_t n = engine().config().n;
  const auto c = backend::embed(embedding, values, out.batch, n, log_slots, factor);
  engine().ring().from_int64(out, SecretVector<std::int64_t>(c.begin(), c.end()));
}

void EmbeddingOps::unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x,
                           int log_slots, double divisor) const {
  const Config& config = engine().config();
  const std::size_t count = x.batch * config.n;
  std::vector<std::uint64_t> primes;
  for (const PrimeIndex i : x.primes) primes.push_back(config.primes[i]);
  const auto q_words = product_words(primes);
  SecretVector<std::uint64_t> integers(q_words.size() * count);
  engine().ring().icrt(integers, q_words.size(), x, IcrtMethod::automatic);
  backend::unembed(embedding, centred_doubles(integers, count, q_words, divisor), x.batch, config.n,
                   log_slots, slots);
}

}  // namespace jali::backend
