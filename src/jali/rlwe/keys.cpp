#include "jali/rlwe/keys.h"

#include <algorithm>

#include "jali/base/error.h"

namespace jali::rlwe {

std::size_t SwitchKey::bytes() const {
  std::size_t total = sizeof(seed);
  for (const auto& poly : b) total += poly.bytes();
  return total;
}

std::size_t EncapsulationKeys::bytes() const {
  return 2 * sizeof(random::Seed) + to_sparse.bytes() + to_dense.bytes();
}

std::size_t EvaluationKeys::bytes() const {
  std::size_t total = relinearisation ? relinearisation->bytes() : 0;
  if (encapsulation) total += encapsulation->bytes();
  for (const auto& [element, key] : galois) total += key.bytes();
  return total;
}

ring::Poly expand_uniform(const ring::Ring& ring, const random::Seed& seed, std::uint32_t index,
                          std::span<const PrimeIndex> primes, std::size_t batch) {
  ring::Poly a = ring.make(primes, batch);
  ring.sample_uniform(a, seed, index);
  return a;
}

std::vector<PrimeIndex> sparse_key_primes(const Params& params) {
  std::vector<PrimeIndex> primes = params.level(0).primes;
  const auto extra = params.sparse_p_primes();
  primes.insert(primes.end(), extra.begin(), extra.end());
  std::ranges::sort(primes);
  return primes;
}

ring::Poly expand_a(const ring::Ring& ring, const Params& params, const PublicKey& key) {
  return expand_uniform(ring, key.seed, 0, params.q_primes());
}

PublicKey host_copy(const ring::Ring& ring, const PublicKey& key) {
  return {key.params, key.key_id, key.seed, ring.host_copy(key.b)};
}

SwitchKey host_copy(const ring::Ring& ring, const SwitchKey& key) {
  SwitchKey out{key.seed, {}, key.level};
  for (const ring::Poly& b : key.b) out.b.push_back(ring.host_copy(b));
  return out;
}

EvaluationKeys host_copy(const ring::Ring& ring, const EvaluationKeys& keys) {
  EvaluationKeys out;
  out.params = keys.params;
  out.key_id = keys.key_id;
  if (keys.relinearisation) out.relinearisation = host_copy(ring, *keys.relinearisation);
  for (const auto& [element, key] : keys.galois) out.galois.emplace(element, host_copy(ring, key));
  if (const auto& key = keys.encapsulation) {
    out.encapsulation = EncapsulationKeys{key->to_sparse_seed, ring.host_copy(key->to_sparse),
                                          key->to_dense_seed, ring.host_copy(key->to_dense)};
  }
  return out;
}

ExpandedKey expand(const ring::Ring& ring, const Params& params, const SwitchKey& key) {
  if (ring.checkpoint()) ring.checkpoint()();
  const auto primes = params.key_primes(key.level);
  require<ParamsMismatch>(key.b.size() == params.key_digits(key.level),
                          "a switching key has another number of digits than its parameters: use "
                          "keys that were made for these parameters");
  const std::size_t part_bytes = primes.size() * ring.n() * word_bytes(ring.word());
  ExpandedKey out{ring.scratch(key.b.size() * 2 * part_bytes), key.b.size(), primes, key.level};
  auto* at = static_cast<std::byte*>(out.data.data());
  for (std::size_t d = 0; d < out.digits; ++d, at += 2 * part_bytes) {
    require<ParamsMismatch>(std::ranges::equal(key.b[d].primes(), primes),
                            "a switching key has other primes than its level needs: use keys that "
                            "were made for these parameters");
    ring.place(at, key.b[d]);
    ring.ops().sample_uniform({at + part_bytes, primes, 1}, key.seed,
                              static_cast<std::uint32_t>(d));
  }
  return out;
}

}  // namespace jali::rlwe
