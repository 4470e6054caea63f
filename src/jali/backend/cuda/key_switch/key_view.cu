#include <algorithm>

#include "jali/backend/cuda/key_switch/key_view.cuh"
#include "jali/base/error.h"

namespace jali::backend::cuda {

Limbs key_limbs(KeyView key, std::span<const PrimeIndex> primes) {
  const Limbs limbs = positions(primes, key.primes);
  require<InvalidArgument>(
      std::find(limbs.prime, limbs.prime + primes.size(), kSkip) == limbs.prime + primes.size(),
      "the key lacks a prime that the product needs");
  return limbs;
}

void place_key(KeyView key, std::span<const PrimeIndex> primes, std::uint8_t (&limb)[kMaxLimbs]) {
  require<Unsupported>(key.primes.size() <= kMaxLimbs,
                       "the GPU engine holds keys of up to 256 limbs");
  const Limbs at = key_limbs(key, primes);
  for (std::size_t i = 0; i < primes.size(); ++i) limb[i] = static_cast<std::uint8_t>(at.prime[i]);
}

void check_first(View acc, ConstView x) {
  require<InvalidArgument>(
      x.primes.size() <= acc.primes.size() &&
          std::ranges::equal(x.primes, acc.primes.first(x.primes.size())),
      "the addend of a key switch must have the first primes of the accumulators");
}

}  // namespace jali::backend::cuda
