#include "jali/rlwe/secret/secret_key.h"

namespace jali::rlwe {

ring::Poly SecretKey::at(const ring::Ring& ring, std::span<const PrimeIndex> primes) const {
  ring::Poly out = ring.make_secret(primes);
  // s has every prime, in order, so runs of limbs are copied at once.
  for (std::size_t i = 0, end = 0; i < primes.size(); i = end) {
    while (end < primes.size() && primes[end] == primes[i] + (end - i)) ++end;
    ring.memory().copy(out.row(i), s_.row(primes[i]), (end - i) * s_.row_bytes());
  }
  return out;
}

}  // namespace jali::rlwe
