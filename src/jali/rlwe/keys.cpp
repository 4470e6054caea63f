#include "jali/rlwe/keys.h"

#include <cstring>

#include "jali/base/error.h"

namespace jali::rlwe {

std::size_t SwitchKey::bytes() const {
  std::size_t total = sizeof(seed);
  for (const auto& poly : b) total += poly.bytes();
  return total;
}

std::size_t EvaluationKeys::bytes() const {
  std::size_t total = relinearisation ? relinearisation->bytes() : 0;
  for (const auto& [element, key] : galois) total += key.bytes();
  return total;
}

namespace {

void sample_row(const random::Seed& seed, std::uint32_t index, const ring::Ring& ring,
                PrimeIndex prime, void* row) {
  random::Prng prng(seed, std::uint64_t{index} << 16 | prime);
  if (ring.word() == Word::w32) {
    random::sample_uniform(prng, ring.prime(prime),
                           std::span(static_cast<std::uint32_t*>(row), ring.n()));
  } else {
    random::sample_uniform(prng, ring.prime(prime),
                           std::span(static_cast<std::uint64_t*>(row), ring.n()));
  }
}

}  // namespace

ring::Poly expand_uniform(const ring::Ring& ring, const random::Seed& seed, std::uint32_t index,
                          std::span<const PrimeIndex> primes, std::size_t batch) {
  ring::Poly a = ring.make(primes, batch);
  for (std::size_t i = 0; i < primes.size(); ++i) {
    for (std::size_t b = 0; b < batch; ++b) {
      sample_row(seed, index + static_cast<std::uint32_t>(b), ring, primes[i], a.row(i, b));
    }
  }
  return a;
}

ring::Poly SecretKey::at(const ring::Ring& ring, std::span<const PrimeIndex> primes) const {
  ring::Poly out = ring.make_secret(primes);
  for (std::size_t i = 0; i < primes.size(); ++i) {
    std::memcpy(out.row(i), s_.row(primes[i]), s_.row_bytes());  // s has every prime, in order
  }
  return out;
}

ring::Poly expand_a(const ring::Ring& ring, const params::CkksParams& params,
                    const PublicKey& key) {
  return expand_uniform(ring, key.seed, 0, params.q_primes());
}

ExpandedKey expand(const ring::Ring& ring, const params::CkksParams& params,
                   const SwitchKey& key) {
  const auto primes = params.all_primes();
  require<ParamsMismatch>(key.b.size() == params.dnum(),
                          "a switching key has another number of digits than its parameters");
  const std::size_t row_bytes = ring.n() * word_bytes(ring.word());
  const std::size_t part_bytes = primes.size() * row_bytes;
  ExpandedKey out;
  out.digits = key.b.size();
  out.data = ring.scratch(out.digits * 2 * part_bytes);
  auto* at = static_cast<std::byte*>(out.data.data());
  for (std::size_t d = 0; d < out.digits; ++d) {
    std::memcpy(at, key.b[d].data(), part_bytes);
    at += part_bytes;
    for (std::size_t i = 0; i < primes.size(); ++i, at += row_bytes) {
      sample_row(key.seed, static_cast<std::uint32_t>(d), ring, primes[i], at);
    }
  }
  return out;
}

}  // namespace jali::rlwe
